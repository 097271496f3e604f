"""`hermes chat`: the terminal, a pipe, or one question."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.errors import ExitCode
from gateway.cli.invocation import Invocation, invocation_of
from gateway.cli.output import drop_output, say

if TYPE_CHECKING:
    from adapters.terminal.screen import Screen
    from gateway.config.home import Home

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def chat(
    ctx: typer.Context,
    *,
    question: Annotated[
        str | None,
        typer.Option("-q", "--query", metavar="TEXT", help="Ask this, print the reply, end."),
    ] = None,
    toolsets: Annotated[
        list[str] | None,
        typer.Option(
            "-t",
            "--toolsets",
            metavar="mcp-A,mcp-B",
            help="Offer only these MCP toolsets, and print which are left out.",
        ),
    ] = None,
) -> None:
    """Chat in the terminal, or on a pipe one request a line; through the running gateway, if one runs.

    Works with no model (guided mode) and no token. Cards and forms are answered with a number,
    a label or text; /help lists the commands. A toolset is what one server offers: mcp-NAME.
    """
    from gateway.app import Interrupted, OutputLost
    from gateway.cli.toolsets import named

    invocation, wanted = invocation_of(ctx), named(toolsets)
    try:
        fine = _attached(invocation, question, wanted)
        if fine is None:
            fine = _in_process(invocation, question, wanted)
    except OutputLost:
        drop_output()
        raise
    except Interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if question is not None and not fine:
        raise typer.Exit(ExitCode.FAILED)


def _attached(
    invocation: Invocation, question: str | None, toolsets: tuple[str, ...]
) -> bool | None:
    """Chat through the running gateway; None when there is none."""
    import asyncio

    from gateway.control.client import SocketClient
    from gateway.domain.errors import GatewayNotRunning

    home = invocation.home()
    client = SocketClient.of(home.path, environ=invocation.environ)
    if not client.is_there:
        return None
    from gateway.cli.attached import chat_attached
    from gateway.cli.toolsets import running_toolsets, settle

    try:
        if toolsets:
            status = asyncio.run(client.status())
            settle(toolsets, running_toolsets(status["mcp_servers"]))
        return asyncio.run(
            chat_attached(
                client,
                lambda: _screen(home, question),
                interactive=question is None,
                toolsets=toolsets,
            )
        )
    except GatewayNotRunning:
        return None


def _in_process(invocation: Invocation, question: str | None, toolsets: tuple[str, ...]) -> bool:
    import asyncio
    from pathlib import Path

    from gateway.app import TerminalChat, run_terminal
    from gateway.cli.debug import fault_armed
    from gateway.cli.first_run import ready_config
    from gateway.cli.toolsets import settle
    from gateway.runtime.toolsets import toolset_of
    from gateway.telemetry.logging import set_up
    from gateway.telemetry.redact import Redactor

    home = invocation.home()
    home.create()
    loaded = ready_config(invocation, home, workspace=Path.cwd())
    if toolsets:
        servers = loaded.config.mcp_servers
        settle(toolsets, [toolset_of(name) for name in servers if servers[name].enabled])
    redactor = Redactor(loaded.secrets)
    options = TerminalChat(
        screen=_screen(home, question),
        redactor=redactor,
        interactive=question is None,
        toolsets=toolsets,
    )
    with (
        fault_armed(invocation.environ),
        set_up(loaded.config.logging, redactor=redactor, logs=home.logs, stream=None),
    ):
        return asyncio.run(run_terminal(home, loaded, options, environ=invocation.environ))


def _screen(home: "Home", question: str | None) -> "Screen":
    from adapters.terminal.screen import Keyboard, OneLine, Pipe

    if question is not None:
        return OneLine(question, sys.stdout)
    at_keyboard = sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]
    if not (at_keyboard and sys.stdout.isatty()):
        return Pipe(sys.stdin, sys.stdout)
    from gateway.runtime.commands import COMMANDS

    say("Type a request, /help for the commands, Ctrl-D to end.")
    words = [f"/{command.name}" for command in COMMANDS]
    return Keyboard(history=home.chat_history, words=words)
