"""`hermes mcp serve`: an MCP server over this gateway, for other agents."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.errors import CommandFailed, ExitCode
from gateway.cli.invocation import invocation_of
from gateway.cli.mcp_home import load_home, redactor_of
from gateway.cli.output import say
from mcp_host.bridge.modes import ChannelMode

if TYPE_CHECKING:
    from gateway.app.bridge import Listen

MAX_TOKEN_BYTES: Final = 4_096


def serve(
    ctx: typer.Context,
    *,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve Streamable HTTP; a port alone is one of loopback."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Holds the bearer token that clients need with --http."),
    ] = None,
    channel: Annotated[
        ChannelMode,
        typer.Option(
            "--claude-channel-mode",
            help="Push messages to Claude Code, and ask its permissions in the chat.",
        ),
    ] = ChannelMode.OFF,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say on stderr what is done.")
    ] = False,
) -> None:
    """Serve conversations, events, sends and approvals to an MCP client on stdin and stdout.

    Reading needs no running gateway; sending and deciding do. Ends with its input.
    """
    import asyncio

    from gateway.app.bridge import Site, serve_on_http, serve_on_pipes
    from gateway.telemetry.config import LoggingConfig, LogLevel
    from gateway.telemetry.logging import set_up

    listen = _listen(http, token_file)
    if listen is not None and channel is not ChannelMode.OFF:
        raise typer.BadParameter("does not go with --http", param_hint="--claude-channel-mode")
    home, loaded = load_home(ctx)
    home.create()
    redactor = redactor_of(loaded)
    if listen is not None:
        redactor.add([listen.token])
    site = Site(home=home, loaded=loaded, environ=invocation_of(ctx).environ, working=Path.cwd())
    # Standard output is the client's: whatever is logged goes to the other one.
    config = LoggingConfig(level=LogLevel.DEBUG if verbose else LogLevel.WARNING)
    with set_up(config, redactor=redactor, logs=None, stream=sys.stderr):
        if listen is None:
            ended = asyncio.run(serve_on_pipes(site, channel=channel))
        else:
            ended = asyncio.run(serve_on_http(site, listen))
    if ended is signal.SIGINT:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _listen(http: str | None, token_file: Path | None) -> "Listen | None":
    from gateway.app.bridge import Listen
    from mcp_host.bridge.address import Address

    if http is None:
        if token_file is not None:
            raise typer.BadParameter("goes with --http", param_hint="--token-file")
        return None
    if token_file is None:
        raise typer.BadParameter("--http needs a token", param_hint="--token-file")
    try:
        address = Address.parse(http)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--http") from error
    return Listen(address=address, token=_token(token_file), listening=_tell)


def _token(path: Path) -> str:
    try:
        with path.open("rb") as source:
            text = source.read(MAX_TOKEN_BYTES + 1).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"the token cannot be read from {path}") from error
    if not text or len(text) > MAX_TOKEN_BYTES or not text.isprintable() or " " in text:
        raise CommandFailed(f"{path} does not hold one token")
    return text


def _tell(url: str) -> None:
    say(f"serving MCP on {url}")
