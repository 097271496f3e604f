"""The stdio transport against real processes."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as wire
import pytest
from mcp.shared.message import SessionMessage

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.stderr import no_log
from mcp_host.transports.guard import ProcessGuard
from mcp_host.transports.stdio import Command, StdioLink, open_stdio
from tests.mcp_host.hosting import SERVERS, is_alive, legacy, lines_of, running
from tests.support.eventually import eventually, eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

CAT = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"


def python(code: str, *args: str, env: dict[str, str] | None = None) -> Command:
    return Command(command=sys.executable, args=("-S", "-c", code, *args), env=env or {})


@asynccontextmanager
async def opened(command: Command) -> AsyncGenerator[StdioLink]:
    async with (
        ProcessGuard() as guard,
        open_stdio("s", command, guard=guard, write_stderr=no_log) as link,
    ):
        yield link


def request(text: str, *, identifier: int = 1) -> SessionMessage:
    params = {"text": text}
    return SessionMessage(
        wire.JSONRPCRequest(jsonrpc="2.0", id=identifier, method="echo", params=params)
    )


async def received(link: StdioLink) -> wire.JSONRPCMessage:
    async with asyncio.timeout(10):
        item = await link.incoming.receive()
    assert isinstance(item, SessionMessage)
    return item.message


# --- messages ----------------------------------------------------------------------


async def test_a_message_goes_out_and_comes_back_whatever_characters_it_has() -> None:
    text = "ünï\u2028\x00\n\ud800 \U0001f600"
    async with opened(python(CAT)) as link:
        await link.outgoing.send(request(text))
        message = await received(link)

    assert isinstance(message, wire.JSONRPCRequest)
    assert message.params == {"text": text}


async def test_lines_that_are_no_messages_are_counted_and_skipped() -> None:
    code = (
        "import sys; out = sys.stdout.buffer\n"
        "out.write(b'npm notice hello\\n[1,\\n\\n{\"jsonrpc\": \"2.0\"}\\n' + b'[' * 9999 + b'\\n')\n"
        'out.write(b\'{"jsonrpc": "2.0", "method": "notifications/x"}\\n\'); out.flush()\n'
        "sys.stdin.read()"
    )
    async with opened(python(code)) as link:
        message = await received(link)

        assert isinstance(message, wire.JSONRPCNotification)
        assert link.notes == ("4 line(s) of its output are no messages",)


async def test_an_answer_with_bad_bytes_is_read_with_marks_in_their_place() -> None:
    code = (
        "import sys; out = sys.stdout.buffer\n"
        'out.write(b\'{"jsonrpc": "2.0", "id": 5, "result": {"a": "x\\xffy"}}\\n\'); out.flush()\n'
        "sys.stdin.read()"
    )
    async with opened(python(code)) as link:
        message = await received(link)

    assert isinstance(message, wire.JSONRPCResponse)
    assert message.result == {"a": "x\ufffdy"}


async def test_twenty_megabytes_arrive_in_time_linear_in_their_length() -> None:
    code = (
        "import sys\n"
        "for size in (2, 20):\n"
        " sys.stdin.readline()\n"
        ' sys.stdout.write(\'{"jsonrpc":"2.0","id":1,"result":{"a":"\' + "z"*(size<<20) + \'"}}\\n\')\n'
        " sys.stdout.flush()\n"
        "sys.stdin.read()"
    )
    took: list[float] = []
    async with opened(python(code)) as link:
        for _ in range(2):
            began = time.perf_counter()
            await link.outgoing.send(request("go"))
            await received(link)
            took.append(time.perf_counter() - began)

    assert took[1] < 30 * took[0] + 1


# --- the start -----------------------------------------------------------------------


async def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolHostError, match="command not found: no-such-command") as caught:
        async with opened(Command(command="no-such-command", env={})):
            pass

    assert not caught.value.retryable


async def test_the_command_is_looked_up_on_the_path_of_the_child(tmp_path: Path) -> None:
    script = tmp_path / "greet"
    script.write_text(
        '#!/bin/sh\necho \'{"jsonrpc": "2.0", "method": "notifications/hi"}\'\nread _'
    )
    script.chmod(0o755)
    command = Command(command="greet", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    async with opened(command) as link:
        assert isinstance(await received(link), wire.JSONRPCNotification)


async def test_a_working_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = Command(command=sys.executable, env={}, cwd=str(tmp_path / "gone"))
    with pytest.raises(ToolHostError, match="gone does not exist"):
        async with opened(command):
            pass


async def test_the_working_directory_is_that_of_the_child(tmp_path: Path) -> None:
    code = "import os; open('here', 'w').write(os.getcwd())"
    command = Command(command=sys.executable, args=("-S", "-c", code), env={}, cwd=str(tmp_path))
    async with opened(command):
        await eventually_async((tmp_path / "here").exists)


async def test_a_file_that_cannot_run_is_unavailable(tmp_path: Path) -> None:
    script = tmp_path / "broken"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ServerUnavailable, match="cannot start"):
        async with opened(Command(command=str(script), env={})):
            pass


async def test_the_child_sees_the_baseline_its_own_variables_and_three_files(
    tmp_path: Path,
) -> None:
    os.environ["HERMES_TEST_SECRET"] = "secret"
    found = tmp_path / "found"
    code = (
        "import json, os, sys; inside = dict(os.environ); files = sorted(os.listdir('/proc/self/fd'))\n"
        "open(sys.argv[1], 'w').write(json.dumps([inside, files]))"
    )
    try:
        async with opened(python(code, str(found), env={"MINE": "yes"})):
            await eventually_async(lambda: found.exists() and bool(found.read_text()))
    finally:
        del os.environ["HERMES_TEST_SECRET"]
    variables, files = json.loads(found.read_text())

    assert variables["MINE"] == "yes"
    assert variables["PATH"] == os.environ["PATH"]
    assert "HERMES_TEST_SECRET" not in variables
    # The fourth is the listing itself.
    assert files == ["0", "1", "2", "3"]


async def test_a_debug_line_names_the_variables_that_were_withheld(
    caplog: pytest.LogCaptureFixture,
) -> None:
    os.environ["HERMES_TEST_SECRET"] = "the value"
    caplog.set_level(logging.DEBUG, "mcp_host")
    try:
        async with opened(python("pass")):
            pass
    finally:
        del os.environ["HERMES_TEST_SECRET"]

    assert "HERMES_TEST_SECRET" in caplog.text
    assert "the value" not in caplog.text


# --- the end -------------------------------------------------------------------------


async def test_the_reason_has_the_exit_code_and_the_last_line_of_stderr() -> None:
    code = "import sys; sys.stderr.write('first\\nno \\x1b[1mlicence\\n\\n'); sys.exit(3)"
    async with opened(python(code)) as link:
        assert await link.why_ended() == "server exited with code 3: no [1mlicence"


async def test_nothing_is_sent_to_a_process_that_has_gone() -> None:
    async with opened(python("raise SystemExit(4)")) as link:
        await link.why_ended()
        with pytest.raises(ServerUnavailable, match="exited with code 4") as caught:
            await link.outgoing.send(request("too late"))

    assert not caught.value.sent


@requirement("mcp.stdio.group_ends")
async def test_the_whole_group_ends_with_the_connection(tmp_path: Path) -> None:
    child = tmp_path / "child"
    async with running(legacy("--child", child)):
        grandchild = int(child.read_text())
        assert is_alive(grandchild)

    assert not is_alive(grandchild)


@requirement("mcp.stdio.group_ends")
async def test_a_server_that_ignores_the_end_of_its_input_and_sigterm_is_killed(
    tmp_path: Path,
) -> None:
    starts = tmp_path / "starts"
    async with running(legacy("--deaf", "--starts", starts)):
        pid = int(lines_of(starts)[0])
        began = time.monotonic()

    assert not is_alive(pid)
    assert time.monotonic() - began < 6


async def test_a_server_that_never_reads_holds_nobody_up() -> None:
    async with opened(python("import time; time.sleep(600)")) as link:
        sending = asyncio.create_task(link.outgoing.send(request("x" * 1_000_000)))
        done, _ = await asyncio.wait({sending}, timeout=0.2)
        assert not done
        sending.cancel()
        await asyncio.wait({sending})
        # A notification never waits: this is how a stuck call is cancelled.
        async with asyncio.timeout(1):
            await link.outgoing.send(
                SessionMessage(wire.JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
            )


@requirement("mcp.stdio.group_ends")
async def test_sigkill_of_the_host_leaves_no_process_of_a_server_behind(tmp_path: Path) -> None:
    starts, child = tmp_path / "starts", tmp_path / "child"
    code = (
        "import asyncio, sys\n"
        "from tests.mcp_host.hosting import legacy, running\n"
        "async def main():\n"
        f"    entry = legacy('--deaf', '--starts', {str(starts)!r}, '--child', {str(child)!r})\n"
        "    async with running(entry):\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    host = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdout=asyncio.subprocess.PIPE,
        cwd=SERVERS.parents[2],
    )
    assert host.stdout is not None
    assert await host.stdout.readline() == b"ready\n"
    pids = [int(lines_of(starts)[0]), int(child.read_text())]
    assert all(map(is_alive, pids))

    host.send_signal(signal.SIGKILL)
    await host.wait()

    eventually(lambda: not any(map(is_alive, pids)), what="end of the server and its child")


@requirement("mcp.stdio.group_ends")
async def test_a_guard_that_was_killed_is_replaced_and_still_knows_the_groups(
    tmp_path: Path,
) -> None:
    async with ProcessGuard() as guard:
        await guard.ready()
        first = guard.pid
        sleeper = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
        guard.watch(sleeper.pid)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await eventually_async(lambda: not is_alive(first))
        await eventually_async(lambda: guard.pid is None)
        await guard.ready()
        assert guard.pid not in {None, first}

    async with asyncio.timeout(10):
        assert await sleeper.wait() == -signal.SIGTERM
