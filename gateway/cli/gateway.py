"""`hermes gateway`: the service in the foreground, setting it up, how it is, and how to end it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.errors import CommandFailed, ExitCode
from gateway.cli.invocation import Invocation, home_of, invocation_of
from gateway.cli.output import print_data, print_json, say
from gateway.cli.setup import setup
from gateway.domain.errors import GatewayNotRunning, GatewayRefused

if TYPE_CHECKING:
    from gateway.config.home import Home
    from gateway.control.client import SocketClient

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    help="Run the gateway, set it up, or ask and end the running one.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

STOP_SECONDS: Final = 20.0
"""A gateway drains for at most 10 s; then its servers and its store are closed."""


@app.callback()
def gateway(ctx: typer.Context) -> None:
    """Run the gateway, set it up, or ask and end the running one."""
    if ctx.invoked_subcommand is None:
        _run(invocation_of(ctx))


@app.command()
def run(ctx: typer.Context) -> None:
    """Run the service in the foreground; logs go to stderr, SIGTERM or Ctrl-C ends it."""
    _run(invocation_of(ctx))


app.command()(setup)


@app.command()
def status(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Say how the gateway is: exit 0 when it is healthy, 1 when degraded, 3 when not running."""
    import asyncio

    found = asyncio.run(_status(ctx))
    if as_json:
        print_json(found)
    else:
        for line in _status_lines(found):
            print_data(line)
    if not found["running"]:
        raise typer.Exit(ExitCode.NOT_FOUND)
    if not found["healthy"]:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def stop(
    ctx: typer.Context,
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Do not wait for what is under way; nothing is lost.")
    ] = False,
) -> None:
    """End the running gateway, and return once it is gone."""
    import asyncio

    from gateway.cli.endings import wait_ended

    stopping = asyncio.run(_client(ctx).stop(now=now))
    pid = int(stopping["pid"])
    if not wait_ended(pid, holder=_holder_of(home_of(ctx)), seconds=STOP_SECONDS):
        raise CommandFailed(f"the gateway (pid {pid}) has not ended after {STOP_SECONDS:.0f} s")
    say(f"the gateway (pid {pid}) has ended")


# --- running ------------------------------------------------------------------------


def _run(invocation: Invocation) -> None:
    # First of all, and before anything is loaded: a second gateway must be refused at once.
    from store.lock import hold_home

    home = invocation.home()
    home.create()
    with hold_home(home.path):
        _serve(invocation, home)


def _serve(invocation: Invocation, home: "Home") -> None:
    import asyncio
    import os

    from gateway.app.service import run_gateway
    from gateway.cli.debug import fault_armed
    from gateway.cli.first_run import ready_config
    from gateway.telemetry.logging import set_up
    from gateway.telemetry.redact import Redactor

    loaded = ready_config(invocation, home)
    redactor = Redactor(loaded.secrets)

    def ready() -> None:
        print_data(f"hermes gateway ready (pid {os.getpid()})")

    with (
        fault_armed(invocation.environ),
        set_up(loaded.config.logging, redactor=redactor, logs=home.logs, stream=sys.stderr),
    ):
        asyncio.run(
            run_gateway(home, loaded, environ=invocation.environ, redactor=redactor, ready=ready)
        )


# --- asking -------------------------------------------------------------------------


async def _status(ctx: typer.Context) -> Mapping[str, Any]:
    home = home_of(ctx)
    try:
        return await _client(ctx).status()
    except GatewayNotRunning:
        return _not_running(home, running=False, reason=_holder_sentence(home))
    except GatewayRefused as error:
        # It is there and does not answer: something holds it.
        return _not_running(home, running=True, reason=str(error))


def _client(ctx: typer.Context) -> "SocketClient":
    from gateway.control.client import SocketClient

    return SocketClient.of(home_of(ctx).path, environ=invocation_of(ctx).environ)


def _holder_of(home: "Home") -> Callable[[], int]:
    def holder() -> int:
        try:
            text = home.lock_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return 0
        return int(text) if text.isdigit() else 0

    return holder


def _holder_sentence(home: "Home") -> str:
    pid = _holder_of(home)()
    return f"process {pid} uses this home and is no gateway that answers" if pid else ""


def _not_running(home: "Home", *, running: bool, reason: str) -> Mapping[str, Any]:
    return {
        "running": running,
        "healthy": False,
        "pid": _holder_of(home)() or None if running else None,
        "platforms": [],
        "mcp_servers": [],
        "scheduler": {"heartbeat_age_s": None},
        "store": {"url": None, "schema": None},
        "home": str(home.path),
        "reason": reason,
    }


# --- for people ---------------------------------------------------------------------


def _status_lines(found: Mapping[str, Any]) -> Sequence[str]:
    reason = f": {found['reason']}" if found.get("reason") else ""
    if not found["running"]:
        return [f"not running{reason}"]
    state = "healthy" if found["healthy"] else "degraded"
    lines = [f"running, {state} (pid {found['pid']}){reason}"]
    lines += [_line(item, "platform") for item in _items(found, "platforms")]
    lines += [_line(item, "MCP server") for item in _items(found, "mcp_servers")]
    store = found["store"]
    if store.get("state", "ok") != "ok":
        lines.append(f"store {store['state']}: {store['reason'] or 'it cannot write now'}")
    return lines


def _items(found: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", found[name])


def _line(item: Mapping[str, Any], what: str) -> str:
    account = f"@{item['account']}" if item.get("account") else ""
    tools = f", {item['tools']} tools" if "tools" in item else ""
    reason = f": {item['reason']}" if item["reason"] else ""
    return f"{what} {item['name']}{account} {item['state']}{tools}{reason}"
