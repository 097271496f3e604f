"""The host: many servers, their states, and a configuration that changes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.domain.errors import ConfigError
from gateway.domain.tools import CallState, ServerState
from gateway.runtime.clock import SystemClock
from mcp_host.host import open_host
from mcp_host.server_config import McpConfig, ServerConfig
from tests.mcp_host.hosting import (
    SERVERS,
    Person,
    arguments,
    is_alive,
    legacy,
    lines_of,
    modern,
    running,
)
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

if TYPE_CHECKING:
    from gateway.ports import ToolHost
    from mcp_host.host import McpHost

MISSING = ServerConfig(command="no-such-command")


def port_of(host: "McpHost") -> "ToolHost":
    """The host as the core sees it; the types must agree."""
    return host


LOADING = """
import asyncio, sys, threading
from gateway.runtime.clock import SystemClock
from mcp_host.server_config import McpConfig, ServerConfig
from mcp_host.host import open_host

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"mcp", "mcp_types"}:
            loaded_by.add(threading.current_thread() is threading.main_thread())

async def main():
    servers = {name: ServerConfig(command="no-such-command") for name in "ab"}
    async with open_host(servers, mcp=McpConfig(), clock=SystemClock(), stderr_log=None,
                         version="0", reload=lambda: servers) as host:
        print([str(status.state) for status in host.servers()], "mcp" in sys.modules)
        while not all(status.reason for status in host.servers()):
            await host.wait_ready(0.1)
        print([status.reason for status in host.servers()], loaded_by)

loaded_by = set()
sys.meta_path.insert(0, Watch())
asyncio.run(main())
"""


def test_the_sdk_is_loaded_beside_the_event_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout.splitlines() == [
        "['connecting', 'connecting'] False",
        "['command not found: no-such-command', 'command not found: no-such-command'] {False}",
    ], done.stderr


async def test_a_host_on_demand_connects_when_somebody_waits_for_it() -> None:
    servers = {"old": legacy()}
    async with open_host(
        servers,
        mcp=McpConfig(),
        clock=SystemClock(),
        stderr_log=None,
        version="0",
        reload=lambda: servers,
        on_demand=True,
    ) as host:
        await host.wait_ready(20)
        states = [status.state for status in host.servers()]

    assert states == [ServerState.READY]


# --- starting ---------------------------------------------------------------------------


async def test_servers_of_both_eras_are_listed_side_by_side() -> None:
    async with running({"old": legacy(), "new": modern(), "off": legacy(enabled=False)}) as host:
        as_port = port_of(host.host)
        states = {status.name: (status.state, status.tools > 0) for status in as_port.servers()}

        assert states == {
            "old": (ServerState.READY, True),
            "new": (ServerState.READY, True),
            "off": (ServerState.DISABLED, False),
        }
        assert as_port.find("mcp__new__echo") is not None
        assert as_port.find("mcp_old_crash") is not None
        assert as_port.find("echo") is None
        assert {spec.server for spec in as_port.tools()} == {"old", "new"}
        assert as_port.search("append text to the runs file", limit=3)


@requirement("mcp.failure.never_delays_others", "case.ms8")
async def test_a_server_that_fails_or_hangs_delays_no_other() -> None:
    servers = {
        "dead": legacy("--exit-at-start", 3),
        "missing": MISSING,
        "hangs": legacy("--silent", "initialize"),
        "good": modern(),
    }
    began = time.monotonic()
    async with running(servers, ready=False) as host:
        await eventually_async(lambda: host.status("good").state is ServerState.READY)
        assert (await host.call("echo", "x", server="good")).text == "x"
        assert time.monotonic() - began < 8
        await eventually_async(lambda: host.status("missing").state is ServerState.PARKED)
        assert host.status("missing").reason == "command not found: no-such-command"
        assert host.status("hangs").state is ServerState.CONNECTING
        await eventually_async(lambda: "exited with code 3" in host.status("dead").reason)
        assert "no licence" in host.status("dead").reason


@requirement("mcp.start.cold_wait")
async def test_waiting_for_servers_has_an_end() -> None:
    async with running(legacy("--silent", "initialize"), ready=False) as host:
        began = time.monotonic()
        await host.host.wait_ready(0.1)

        assert time.monotonic() - began < 2
        assert host.status().state is ServerState.CONNECTING


@requirement("case.ms8")
async def test_a_server_that_says_nothing_fails_after_its_own_connect_timeout() -> None:
    entry = legacy("--silent", "initialize", connect_timeout=0.3)
    async with running(entry, ready=False) as host:
        await eventually_async(lambda: host.status().reason == "no answer in 0.3 s")
        result = await host.call("echo")

    assert result.state is CallState.ERROR


async def test_at_most_so_many_servers_connect_at_once(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    servers = {
        f"s{number}": legacy("--starts", starts, "--silent", "initialize") for number in range(5)
    }
    async with running(servers, mcp=McpConfig(discovery_concurrency=2), ready=False):
        await eventually_async(lambda: len(lines_of(starts)) == 2)
        await asyncio.sleep(0.3)
        assert len(lines_of(starts)) == 2


async def test_a_host_without_servers_never_imports_the_sdk() -> None:
    code = (
        "import asyncio, sys\n"
        "from mcp_host.server_config import McpConfig\n"
        "from mcp_host.host import open_host\n"
        "from gateway.runtime.clock import SystemClock\n"
        "async def main():\n"
        "    async with open_host({}, mcp=McpConfig(), clock=SystemClock(), stderr_log=None,\n"
        "                         version='0', reload=dict) as host:\n"
        "        await host.wait_ready(1)\n"
        "        assert not host.tools() and not host.servers() and host.find('x') is None\n"
        "        await host.reload()\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name in ('mcp', 'mcp_types', 'jsonschema')])\n"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=SERVERS.parents[2],
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")


async def test_a_hosts_user_gets_its_own_error_and_the_processes_end(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    with pytest.raises(KeyError):
        async with running(legacy("--starts", starts)):
            raise KeyError

    assert not is_alive(int(lines_of(starts)[0]))


async def test_closing_ends_calls_in_flight_and_every_process(tmp_path: Path) -> None:
    starts, runs = tmp_path / "starts", tmp_path / "runs"
    servers = {name: legacy("--starts", starts, "--runs", runs) for name in ("a", "b", "c")}
    async with running(servers) as host:
        call = asyncio.create_task(host.call("never", server="a"))
        await eventually_async(lambda: lines_of(runs) == ["never"])
        pids = [int(line) for line in lines_of(starts)]
    result = await call

    assert result.state is CallState.ERROR
    assert len(pids) == 3
    assert not any(map(is_alive, pids))


async def test_stderr_of_the_servers_is_kept_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "mcp-stderr.log"
    async with running({"bad": legacy("--exit-at-start", 1)}, stderr_log=log, ready=False):
        await eventually_async(lambda: any("licence" in line for line in lines_of(log)))

    assert " bad: cannot start: [31mno licence[0m found" in lines_of(log)[0]


# --- the registry ---------------------------------------------------------------------------


async def test_filters_and_malformed_tools_are_told_in_the_status() -> None:
    entry = legacy("--broken-tools", tools={"include": ["echo", "wri*"]})
    async with running(entry) as host:
        status = host.status()

        assert status.tools == 5
        assert {spec.name for spec in host.host.tools()} >= {"echo", "write", "write_bare"}
        assert any("not in include" in note for note in status.notes)
        assert any("without an input schema" in note for note in status.notes)


async def test_tools_in_pages_are_all_registered() -> None:
    async with running(legacy("--page", 7, "--many", 90)) as host:
        names = {spec.name for spec in host.host.tools()}

        assert names > {f"tool_{number}" for number in range(90)}
        assert host.status().tools == len(names) > 100


@requirement("mcp.list_changed")
@pytest.mark.parametrize("make", [legacy, modern])
async def test_a_changed_list_is_registered_without_a_reconnect(
    make: Callable[[], ServerConfig],
) -> None:
    async with running(make()) as host:
        assert host.host.find("mcp__s__fresh") is None
        await host.call("changed", "200")
        await eventually_async(lambda: host.host.find("mcp__s__fresh") is not None)

        assert host.status().state is ServerState.READY


@requirement("case.mh16")
async def test_a_parked_server_keeps_its_tools_known_and_gets_them_back(tmp_path: Path) -> None:
    broken, starts = tmp_path / "broken", tmp_path / "starts"
    clock = ManualClock()
    entry = legacy("--fail-while", broken, "--starts", starts)
    async with running(entry, clock=clock) as host:
        tools = host.status().tools
        broken.touch()
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        while host.status().state is not ServerState.PARKED:
            clock.advance(20)
            await asyncio.sleep(0.05)
        assert host.status().tools == tools > 0
        broken.unlink()
        clock.advance(400)
        await host.host.probe()
        await eventually_async(lambda: host.status().state is ServerState.READY)
        assert (await host.call("echo", "back")).text == "back"


# --- reload ---------------------------------------------------------------------------------


@requirement("command.reload_mcp.report", "case.ms10")
async def test_a_reload_touches_only_what_changed(tmp_path: Path) -> None:
    starts = {name: tmp_path / name for name in ("kept", "changed", "removed", "added")}

    def entry(name: str, *more: object) -> ServerConfig:
        return legacy("--starts", starts[name], *more)

    before = {name: entry(name) for name in ("kept", "changed", "removed")}
    async with running(before) as host:
        first = {name: int(lines_of(starts[name])[0]) for name in before}
        del host.wanted["removed"]
        host.wanted["changed"] = entry("changed", "--many", 5)
        host.wanted["added"] = entry("added")
        reloaded = await host.host.reload()

        assert (reloaded.added, reloaded.removed) == (("added",), ("removed",))
        assert (reloaded.changed, reloaded.parked) == (("changed",), ())
        assert [status.name for status in host.host.servers()] == ["kept", "changed", "added"]
        assert host.status("changed").tools == host.status("kept").tools + 5
        assert is_alive(first["kept"])
        assert not is_alive(first["changed"])
        assert not is_alive(first["removed"])
        assert len(lines_of(starts["kept"])) == 1
        assert host.host.find("mcp__removed__echo") is None


async def test_a_disabled_server_is_torn_down_and_comes_back_when_enabled(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with running(legacy("--starts", starts)) as host:
        pid = int(lines_of(starts)[0])
        host.wanted["s"] = legacy("--starts", starts, enabled=False)
        await host.host.reload()
        assert host.status().state is ServerState.DISABLED
        assert not is_alive(pid)
        assert host.host.tools() == ()
        assert (await host.call("echo")).state is CallState.ERROR
        host.wanted["s"] = legacy("--starts", starts)
        await host.host.reload()

        assert (await host.call("echo", "x")).text == "x"


@requirement("command.reload_mcp.report")
async def test_a_named_server_is_reconnected_in_any_case_and_no_other(tmp_path: Path) -> None:
    starts = {name: tmp_path / name for name in ("a", "b")}
    servers = {name: legacy("--starts", path) for name, path in starts.items()}
    async with running(servers) as host:
        reloaded = await host.host.reload("a")

        assert reloaded.changed == ()
        assert len(lines_of(starts["a"])) == 2
        assert len(lines_of(starts["b"])) == 1
        assert host.status("a").state is ServerState.READY
        unknown = await host.host.reload("nobody")
        assert unknown.parked == (("nobody", "is not configured"),)


@requirement("command.reload_mcp.report", "mcp.parked.probes")
async def test_a_reload_tries_parked_servers_at_once_and_tells_which_stay_parked(
    tmp_path: Path,
) -> None:
    script = tmp_path / "server"
    async with running({"late": ServerConfig(command=str(script)), "missing": MISSING}) as host:
        assert host.status("late").state is ServerState.PARKED
        script.write_text(f"#!/bin/sh\nexec {sys.executable} -S {SERVERS / 'legacy_server.py'}\n")
        script.chmod(0o755)
        reloaded = await host.host.reload()

        assert reloaded.parked == (("missing", "command not found: no-such-command"),)
        assert host.status("late").state is ServerState.READY


@requirement("mcp.parked.probes")
async def test_a_parked_server_whose_entry_changes_is_tried_at_once() -> None:
    clock = ManualClock()
    async with running(ServerConfig(command="no-such-command"), clock=clock) as host:
        assert host.status().state is ServerState.PARKED
        host.wanted["s"] = legacy()
        await host.host.reload()

        assert host.status().state is ServerState.READY


@requirement("command.reload_mcp.report")
async def test_a_reload_lists_ready_servers_again(tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    async with running(legacy("--lists", lists)) as host:
        await host.host.reload()
        await eventually_async(lambda: len(lines_of(lists)) == 2)


async def test_a_configuration_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    starts = tmp_path / "starts"

    def broken() -> dict[str, ServerConfig]:
        raise ConfigError("config.yaml:3:7", "no YAML")

    entry = legacy("--starts", starts)
    async with open_host(
        {"s": entry},
        mcp=McpConfig(),
        clock=ManualClock(),
        stderr_log=None,
        version="0",
        reload=broken,
    ) as host:
        await host.wait_ready(30)
        with pytest.raises(ConfigError):
            await host.reload()

        assert host.servers()[0].state is ServerState.READY
        assert len(lines_of(starts)) == 1


@requirement("case.ms1")
async def test_five_reconnects_of_a_server_that_stopped_answering_leave_one_process(
    tmp_path: Path,
) -> None:
    starts = tmp_path / "starts"
    async with running(legacy("--starts", starts, "--silent", "tools/call")) as host:
        for _ in range(5):
            await host.host.reload("s")
        pids = [int(line) for line in lines_of(starts)]

        assert [is_alive(pid) for pid in pids] == [False] * 5 + [True]


@requirement("case.ms5")
async def test_a_call_of_a_server_that_is_replaced_fails_fast(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs)) as host:
        person = Person(arguments(str(tmp_path / "never")))
        call = asyncio.create_task(host.call("hold_write", person=person))
        await eventually_async(lambda: lines_of(runs) == ["hold"])
        host.wanted["s"] = legacy("--runs", runs, "--many", 1)
        await host.host.reload()
        async with asyncio.timeout(5):
            result = await call

    assert result.state is CallState.UNKNOWN
    assert "its connection was closed" in result.text
    assert lines_of(runs) == ["hold"]
