"""What the `hermes mcp` commands share: the home's configuration, one entry of it, and the logs."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from gateway.cli.invocation import Invocation, home_of, invocation_of
from gateway.cli.output import say

if TYPE_CHECKING:
    from gateway.app.servers import Entry
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.telemetry.redact import Redactor


def load_home(ctx: typer.Context) -> "tuple[Home, Loaded]":
    """Load the configuration; what is wrong with all of `mcp_servers` is said."""
    from gateway.config.load import load

    invocation: Invocation = invocation_of(ctx)
    home = home_of(ctx)
    loaded = load(home, environ=invocation.environ)
    invocation.secrets = loaded.secrets
    for finding in loaded.findings.errors:
        if finding.path == "mcp_servers":
            say(str(finding))
    return home, loaded


def entry_of(loaded: "Loaded", name: str) -> "Entry | None":
    """Return the entry of that name, None when there is none."""
    from gateway.app.servers import entries

    return next((entry for entry in entries(loaded) if entry.name == name), None)


def redactor_of(loaded: "Loaded") -> "Redactor":
    """Return what takes the configured secrets out of a text."""
    from gateway.telemetry.redact import Redactor

    return Redactor(loaded.secrets)


def logs_of(home: "Home", loaded: "Loaded", redactor: "Redactor") -> Any:
    """Return a context in which the home's logs are written."""
    from gateway.telemetry.logging import set_up

    home.create()
    return set_up(loaded.config.logging, redactor=redactor, logs=home.logs, stream=None)


def at_terminal() -> bool:
    """Tell whether somebody can be asked."""
    # A stream is None when its descriptor was closed before the start.
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison]
