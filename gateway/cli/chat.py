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
    from gateway.config.load import Loaded

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def chat(
    ctx: typer.Context,
    *,
    question: Annotated[
        str | None,
        typer.Option("-q", "--query", metavar="TEXT", help="Ask this, print the reply, end."),
    ] = None,
) -> None:
    """Chat in the terminal, or on a pipe one request a line.

    Works with no model (guided mode) and no token. Cards and forms are answered with a number,
    a label or text; /help lists the commands.
    """
    import asyncio
    from pathlib import Path

    from gateway.app import Interrupted, OutputLost, TerminalChat, run_terminal
    from gateway.config.load import load
    from gateway.telemetry.logging import set_up
    from gateway.telemetry.redact import Redactor

    invocation = invocation_of(ctx)
    home = _ready_home(invocation)
    loaded = load(home, environ=invocation.environ, workspace=Path.cwd())
    invocation.secrets = loaded.secrets
    _tell(loaded)
    screen = _screen(home, question)
    redactor = Redactor(loaded.secrets)
    options = TerminalChat(screen=screen, redactor=redactor, interactive=question is None)
    with set_up(loaded.config.logging, redactor=redactor, logs=home.logs, stream=None):
        try:
            fine = asyncio.run(run_terminal(home, loaded, options, environ=invocation.environ))
        except OutputLost:
            drop_output()
            raise
        except Interrupted:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    if question is not None and not fine:
        raise typer.Exit(ExitCode.FAILED)


def _ready_home(invocation: Invocation) -> "Home":
    from gateway.config.first import first_config
    from gateway.config.writer import write_first

    home = invocation.home()
    home.create()
    if write_first(home, first_config(home)):
        say(f"Wrote {home.config_file}: guided mode, with the bundled demo server.")
    return home


def _tell(loaded: "Loaded") -> None:
    for finding in loaded.findings.items:
        say(f"{finding.severity}: {finding.path}: {finding.message}")


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
