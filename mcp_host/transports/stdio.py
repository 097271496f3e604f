"""Talks JSON-RPC lines with a child process of its own group, which ends with the connection."""

import asyncio
import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

import anyio
import mcp_types as wire
from mcp.shared.message import SessionMessage

from gateway.domain.errors import ServerUnavailable, ToolHostError
from gateway.telemetry.redact import Redactor
from gateway.telemetry.secrets import secrets_of
from mcp_host.environment import ChildEnvironment, child_environment
from mcp_host.errors import reason_of
from mcp_host.stderr import StderrTail, WriteLine
from mcp_host.transports.base import LinkStream
from mcp_host.transports.groups import end_group
from mcp_host.transports.guard import ProcessGuard
from mcp_host.transports.lines import TooLong
from mcp_host.transports.messages import encode, parse, too_long
from mcp_host.transports.process import ServerProcess

logger = logging.getLogger(__name__)

SHOWN_JUNK: Final = 200
_RESPONSE_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run; `env` is on top of the safe baseline."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str]
    cwd: str | None = None


@asynccontextmanager
async def open_stdio(
    server: str, command: Command, *, guard: ProcessGuard, write_stderr: WriteLine
) -> AsyncGenerator["StdioLink"]:
    """Spawn the server and yield the link to it; its whole group is gone afterwards.

    Raises:
        ToolHostError: There is no such command or working directory.
        ServerUnavailable: The process could not be started now.
    """
    process = await _spawn(server, command, guard=guard, write_stderr=write_stderr)
    link = StdioLink(server, process)
    try:
        yield link
    finally:
        await _finish(process, guard)


async def _finish(process: ServerProcess, guard: ProcessGuard) -> None:
    # A task of its own: a second cancellation must not leave the group behind.
    ending = asyncio.create_task(_end(process, guard), name="end mcp server")
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await asyncio.wait({ending})
        raise


async def _end(process: ServerProcess, guard: ProcessGuard) -> None:
    process.close_stdin()
    await end_group(process.pid, leader_exited=process.exited)
    guard.release(process.pid)
    process.close()


async def _spawn(
    server: str, command: Command, *, guard: ProcessGuard, write_stderr: WriteLine
) -> ServerProcess:
    plan = _plan(server, command)
    redactor = Redactor(secrets_of({"args": command.args, "env": command.env}))
    await guard.ready()
    try:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: ServerProcess(stderr=StderrTail(write_stderr, redact=redactor.redact)),
            plan.program,
            *command.args,
            cwd=plan.cwd,
            env=dict(plan.environment.variables),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ServerUnavailable(server, f"cannot start: {reason_of(error)}", sent=False) from error
    guard.watch(process.pid)
    withheld = ", ".join(plan.environment.withheld)
    logger.debug("server %s: process %d; variables withheld: %s", server, process.pid, withheld)
    return process


@dataclass(frozen=True, slots=True)
class _Plan:
    program: str
    cwd: str | None
    environment: ChildEnvironment


def _plan(server: str, command: Command) -> _Plan:
    environment = child_environment(os.environ, configured=command.env)
    cwd = os.path.expanduser(command.cwd) if command.cwd else None
    if cwd is not None and not os.path.isdir(cwd):
        raise ToolHostError(server, f"its working directory {cwd} does not exist")
    name = os.path.expanduser(command.command)
    if os.sep in name:
        name = os.path.join(cwd or "", name)
        program = shutil.which(name)
    else:
        program = _find(name, environment.variables.get("PATH", os.defpath))
    if program is None:
        raise ToolHostError(server, f"command not found: {command.command}")
    return _Plan(program=os.path.abspath(program), cwd=cwd, environment=environment)


def _find(name: str, path: str) -> str | None:
    # The child's PATH decides, as it would in its own shell; what is installed beside this program
    # (the demo server is `hermes` itself) is found without it too.
    return shutil.which(name, path=path) or shutil.which(name, path=os.path.dirname(sys.executable))


class StdioLink:
    """The lines of one process as messages, both ways (`transports.base.Link`)."""

    needs_person = False

    def __init__(self, server: str, process: ServerProcess) -> None:
        self._process = process
        self.incoming = _Incoming(process)
        self.outgoing = _Outgoing(server, process)

    @property
    def notes(self) -> tuple[str, ...]:
        ignored = self.incoming.ignored
        return (f"{ignored} line(s) of its output are no messages",) if ignored else ()

    @property
    def last_words(self) -> str:
        return self._process.stderr.last_line

    async def why_ended(self) -> str:
        return await self._process.how_it_ended()


class _Incoming(LinkStream):
    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self.ignored = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while (line := await self._process.next_line()) is not None:
            message = _refusal(line) if isinstance(line, TooLong) else parse(line)
            if message is not None:
                return SessionMessage(message)
            self._ignore(line)
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def _ignore(self, line: bytes | TooLong) -> None:
        raw = line.head if isinstance(line, TooLong) else line
        if raw.strip():
            self.ignored += 1
            self._process.stderr.add(b"(stdout) " + raw[:SHOWN_JUNK])


class _Outgoing(LinkStream):
    def __init__(self, server: str, process: ServerProcess) -> None:
        self._server = server
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        is_request = isinstance(item.message, wire.JSONRPCRequest)
        if not self._process.write(encode(item.message) + b"\n"):
            if is_request:
                why = await self._process.how_it_ended()
                raise ServerUnavailable(self._server, why, sent=False)
            raise anyio.BrokenResourceError
        # A notification never waits: it may be the cancellation of a call that is stuck here.
        if is_request:
            await self._process.drained()


def _refusal(line: TooLong) -> wire.JSONRPCMessage | None:
    """Stand in for an answer that was too long to be kept, so that its call does not wait."""
    found = _RESPONSE_ID.search(line.head)
    if found is None or b'"method"' in line.head:
        return None
    return too_long(int(found[1]))
