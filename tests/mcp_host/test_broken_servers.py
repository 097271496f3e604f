"""Servers that crash, hang, talk garbage or answer too much: what it costs, and whom."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.sanitize import TOO_DEEP
from tests.mcp_host.hosting import (
    SERVERS,
    Person,
    arguments,
    is_alive,
    legacy,
    lines_of,
    running,
)
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

LONGEST_PAUSE = 30
"""Seconds; longer than any between two tries."""
MAX_HELD_MS = 50
TICK_SECONDS = 0.002


class Loop:
    """How long the event loop was held at most, without the time other processes took from it."""

    def __init__(self) -> None:
        self.held_ms = 0.0

    async def watch(self) -> None:
        while True:
            began, waited = time.perf_counter(), _runqueue_wait()
            await asyncio.sleep(TICK_SECONDS)
            took = time.perf_counter() - began - (_runqueue_wait() - waited) - TICK_SECONDS
            self.held_ms = max(self.held_ms, took * 1000)


def _runqueue_wait() -> float:
    fields = Path("/proc/thread-self/schedstat").read_text().split()
    return int(fields[1]) / 1e9


@asynccontextmanager
async def watched() -> AsyncGenerator[Loop]:
    loop = Loop()
    watcher = asyncio.create_task(loop.watch())
    try:
        yield loop
    finally:
        watcher.cancel()
        await asyncio.wait({watcher})


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def has_entry(pid: int) -> bool:
    """Tell whether the system knows the process, if only as a zombie."""
    return Path(f"/proc/{pid}").exists()


@requirement("fault.f30")
async def test_a_crash_at_any_stage_costs_one_restart_no_zombie_and_no_other_server(
    tmp_path: Path,
) -> None:
    stages = ("spawn", "initialize", "tools/list", "tools/call", "idle")
    starts = {stage: tmp_path / stage.replace("/", "_") for stage in stages}
    servers = {
        stage.replace("/", "_"): legacy("--crash-in", stage, "--starts", starts[stage])
        for stage in stages
    }
    healthy = tmp_path / "healthy"
    async with running({**servers, "fine": legacy("--starts", healthy)}, ready=False) as host:
        await eventually_async(lambda: host.status("fine").state is ServerState.READY)
        # A call would wake a server in its pause, so each is left alone until it is back.
        for stage in stages:
            count = 1 if stage == "tools/call" else 2
            await eventually_async(
                lambda stage=stage, count=count: len(lines_of(starts[stage])) == count
            )
        first = await host.call("echo", "x", server="tools_call")
        for name in servers:
            await eventually_async(lambda name=name: host.status(name).state is ServerState.READY)
            assert (await host.call("echo", "back", server=name)).text == "back"
        fine = await host.call("echo", "still", server="fine")
        pids = [[int(pid) for pid in lines_of(path)] for path in starts.values()]

        # Not even a zombie is left.
        assert not any(has_entry(started[0]) for started in pids)
        # A reading tool is simply called again.
        assert (first.state, first.text) == (CallState.OK, "x")
        assert fine.text == "still"
        assert len(lines_of(healthy)) == 1
        assert [len(started) for started in pids] == [2] * 5


@requirement("fault.f31")
async def test_a_server_that_hangs_anywhere_is_bounded_and_holds_no_loop(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with running(legacy("--starts", starts), ready=True) as warm, watched() as loop:
        del warm
        servers = {
            "mute": legacy("--silent", "initialize", "--starts", starts, connect_timeout=0.3),
            "s": legacy("--deaf", "--starts", starts, timeout=0.3),
        }
        async with running(servers, ready=False) as host:
            await eventually_async(lambda: host.status().state is ServerState.READY)
            await eventually_async(lambda: host.status("mute").reason != "")
            unheard = host.status("mute").reason
            never = await host.call("never")
            alive = await host.call("echo", "alive")
            await host.call("stop_reading")
            await host.call("echo", "the last that is read")
            stuck = await host.call("echo", person=Person(arguments("x" * 4_000_000)))
            began = time.monotonic()
        closing = time.monotonic() - began

    assert unheard == "no answer in 0.3 s"
    assert "no answer within 0.3 s" in never.text
    assert alive.text == "alive"
    assert "no answer within 0.3 s" in stuck.text
    assert closing < 8
    assert not any(is_alive(int(pid)) for pid in lines_of(starts))
    assert loop.held_ms < MAX_HELD_MS


@requirement("fault.f32", "threat.s21")
async def test_garbage_between_and_inside_answers_is_skipped_in_bounded_memory() -> None:
    async with running(legacy()) as host:
        # What the first large line costs stays with the process.
        before, peak = resident_mb(), 0.0
        call = asyncio.create_task(host.call("too_long"))
        while not call.done():
            peak = max(peak, resident_mb() - before)
            await asyncio.sleep(TICK_SECONDS)
        parked = await call
        junk = await host.call("junk")
        bytes_ = await host.call("bad_bytes")
        echo = await host.call("echo", "as ever")

    assert "longer than 64 MiB" in parked.text
    assert (junk.text, bytes_.text, echo.text) == ("after junk", "a\ufffdb", "as ever")
    # The line has 100 MB; it is kept up to the limit, and once more while it is cut.
    assert peak < 180


@requirement("fault.f33", "threat.s21")
async def test_what_is_too_much_for_a_model_is_cut_and_said() -> None:
    async with running(legacy("--odd-tools")) as host:
        huge = await host.call("huge", "50000000")
        parts = await host.call("many_parts", "10000")
        cyclic = host.host.find("mcp__s__cyclic")
        deep = host.host.find("mcp__s__deep")
        echo = await host.call("echo", "goes on")

    assert (huge.state, len(huge.text) < 1_000_200) == (CallState.OK, True)
    assert "cut: 50000000 characters" in huge.text
    assert parts.text.count("part\n") == 1_000
    assert "9000 more parts were left out" in parts.text
    assert cyclic is not None
    assert cyclic.input_schema["$ref"] == "#"
    assert deep is not None
    assert TOO_DEEP in json.dumps(deep.input_schema)
    assert echo.text == "goes on"


@requirement("fault.f34")
async def test_a_storm_of_changes_is_read_a_few_times_and_never_twice_at_once(
    tmp_path: Path,
) -> None:
    lists = tmp_path / "lists"
    async with running(legacy("--lists", lists)) as host:
        for _ in range(5):
            assert (await host.call("changed", "1000")).text == "said so"
        await eventually_async(lambda: host.host.find("mcp__s__fresh") is not None)
        listed = len(lines_of(lists))
        echo = await host.call("echo", "x")

    # 5,000 changes in well under a second; one list at the start.
    assert 2 <= listed <= 4
    assert echo.text == "x"


@requirement("case.ms3")
async def test_a_server_that_exits_at_start_or_in_a_call_is_told_at_once_with_its_last_words(
    tmp_path: Path,
) -> None:
    servers = {"start": legacy("--exit-at-start", 1), "s": legacy("--runs", tmp_path / "runs")}
    async with running(servers, ready=False) as host, asyncio.timeout(20):
        await eventually_async(lambda: host.status("start").reason != "")
        reason = host.status("start").reason
        await eventually_async(lambda: host.status().state is ServerState.READY)
        began = time.monotonic()
        in_call = await host.call("crash")
        took = time.monotonic() - began

    assert reason == "server exited with code 1: cannot start: [31mno licence[0m found"
    assert in_call.state is CallState.UNKNOWN
    assert "exited with code 7: fatal: the disk is on fire" in in_call.text
    assert took < 5


@requirement("case.ms3", "mcp.stdio.group_ends")
async def test_a_child_that_keeps_the_output_of_a_dead_server_open_holds_no_call(
    tmp_path: Path,
) -> None:
    starts, child, runs = tmp_path / "starts", tmp_path / "child", tmp_path / "runs"
    entry = legacy("--starts", starts, "--child", child, "--runs", runs)
    async with running(entry) as host, asyncio.timeout(20):
        grandchild = int(child.read_text())
        call = asyncio.create_task(host.call("hold_write", str(tmp_path / "never")))
        await eventually_async(lambda: lines_of(runs) == ["hold"])
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        lost = await call
        # The next call waits for the new process.
        again = await host.call("echo", "x")
        assert not is_alive(grandchild)

    assert lost.state is CallState.UNKNOWN
    assert "killed by signal 9" in lost.text
    assert again.text == "x"


_LIMITED = """
import asyncio, resource, sys
import mcp_host.connection
from tests.mcp_host.hosting import legacy, running
from tests.support.clock import ManualClock

async def main():
    starts = sys.argv[1]
    clock = ManualClock()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running({}, clock=clock) as host:
        await asyncio.to_thread(int)
        import os
        used = max(map(int, os.listdir("/proc/self/fd"))) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
        host.wanted["s"] = legacy("--starts", starts)
        reloading = asyncio.create_task(host.host.reload())
        while not (host.host.servers() and host.status().state.value == "parked"):
            await asyncio.sleep(0.02)
            clock.advance(6)
        print("parked:", host.status().reason, flush=True)
        await reloading
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        clock.advance(400)
        await host.host.probe()
        while host.status().state.value != "ready":
            await asyncio.sleep(0.01)
        print("ready", (await host.call("echo", "again")).text, flush=True)

asyncio.run(main())
"""


@requirement("fault.f47")
def test_a_host_out_of_descriptors_parks_the_server_and_gets_it_back(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    said = _run(_LIMITED, str(starts))

    assert "parked: " in said[0]
    assert "Too many open files" in said[0] or "cannot start" in said[0]
    assert said[1] == "ready again"
    assert len(lines_of(starts)) == 1


_NO_FORK = """
import asyncio, os, resource, sys
import mcp_host.connection
from mcp_host.server_config import ServerConfig
from tests.mcp_host.hosting import running

async def main():
    async with running({}) as host:
        await asyncio.to_thread(int)
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 0)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
        host.wanted["s"] = ServerConfig.model_validate({"command": "/bin/cat"})
        reloading = asyncio.create_task(host.host.reload())
        while not (host.host.servers() and host.status().reason):
            await asyncio.sleep(0.01)
        print(host.status().state.value, host.status().reason, flush=True)
        # Python itself would now fail to end its threads.
        os._exit(0)

asyncio.run(main())
"""


@requirement("fault.f47")
def test_a_fork_that_fails_is_a_reason_and_tried_again_later() -> None:
    (said,) = _run(_NO_FORK)

    assert said.startswith("connecting ")
    assert "temporarily unavailable" in said


@requirement("fault.f47")
async def test_a_child_that_runs_out_of_memory_again_and_again_is_parked_in_the_end(
    tmp_path: Path,
) -> None:
    clock, starts = ManualClock(), tmp_path / "starts"
    async with running(legacy("--starts", starts), clock=clock) as host:
        for count in range(1, 7):
            await eventually_async(lambda count=count: len(lines_of(starts)) == count)
            await eventually_async(lambda: host.status().state is ServerState.READY)
            os.kill(int(lines_of(starts)[-1]), 9)
            await eventually_async(lambda: host.status().state is not ServerState.READY)
            await asyncio.sleep(0.05)
            assert len(lines_of(starts)) == count
            clock.advance(LONGEST_PAUSE)
        await eventually_async(lambda: host.status().state is ServerState.PARKED)
        tools = host.status().tools

    assert len(lines_of(starts)) == 6
    assert tools > 0


def _run(code: str, *args: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=SERVERS.parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
