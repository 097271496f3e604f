"""`hermes mcp serve`: an MCP server over this gateway, for other agents."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.errors import ExitCode
from gateway.cli.invocation import invocation_of
from gateway.cli.mcp_home import load_home, redactor_of


def serve(
    ctx: typer.Context,
    *,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say on stderr what is done.")
    ] = False,
) -> None:
    """Serve conversations, events, sends and approvals to an MCP client on stdin and stdout.

    Reading needs no running gateway; sending and deciding do. Ends with its input.
    """
    import asyncio

    from gateway.app.bridge import serve_bridge
    from gateway.telemetry.config import LoggingConfig, LogLevel
    from gateway.telemetry.logging import set_up

    home, loaded = load_home(ctx)
    home.create()
    # Standard output is the client's: whatever is logged goes to the other one.
    config = LoggingConfig(level=LogLevel.DEBUG if verbose else LogLevel.WARNING)
    with set_up(config, redactor=redactor_of(loaded), logs=None, stream=sys.stderr):
        ended = asyncio.run(
            serve_bridge(home, loaded, environ=invocation_of(ctx).environ, working=Path.cwd())
        )
    if ended is signal.SIGINT:
        raise typer.Exit(ExitCode.INTERRUPTED)
