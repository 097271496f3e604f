"""What the `hermes mcp` commands share: the home's configuration, one entry of it, and the logs."""

import sys
from typing import TYPE_CHECKING, Any, Final

import typer

from gateway.cli.errors import CommandFailed
from gateway.cli.invocation import Invocation, home_of, invocation_of
from gateway.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.app.servers import Entry
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.telemetry.redact import Redactor

SECTION: Final = "mcp_servers"


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


def confirm(question: str) -> None:
    """Ask at the terminal; anything but a yes ends the command."""
    if not typer.confirm(question, err=True):
        raise CommandFailed("nothing was changed")


def write(ctx: typer.Context, home: "Home", changes: "Mapping[tuple[str, ...], object]") -> None:
    """Write changes of config.yaml, unless they make it worse."""
    from gateway.config.writer import save

    save(home, changed_text(ctx, home, changes))


def changed_text(
    ctx: typer.Context, home: "Home", changes: "Mapping[tuple[str, ...], object]"
) -> str:
    """Return config.yaml with changes, unless they make it worse."""
    from gateway.config.load import check
    from gateway.config.writer import edited

    environ = invocation_of(ctx).environ
    before = check(home, environ=environ).items
    text = edited(home, changes)
    after = check(home, environ=environ, text=text)
    wrong = [item for item in after.errors if item not in before]
    if wrong:
        raise CommandFailed(f"nothing was changed: {wrong[0].path}: {wrong[0].message}")
    return text
