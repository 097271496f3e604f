"""`hermes debug`: what those who test this program need, and how a fault of theirs is armed."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer

from gateway.cli.errors import CommandFailed
from gateway.cli.output import print_data, print_json

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, help="Tools for those who test this program."
)


@app.callback()
def debug() -> None:
    """Tools for those who test this program."""


@app.command()
def faults(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the points where HERMES_FAULT=point:nth:action can break a process."""
    from gateway.telemetry.faults import VARIABLE, FaultAction, FaultPoint

    if as_json:
        points = [{"name": point.value, "summary": point.summary} for point in FaultPoint]
        print_json({"points": points, "actions": [action.value for action in FaultAction]})
        return
    print_data(f"{VARIABLE}=point:nth:action, an action being {', '.join(FaultAction)}")
    for point in FaultPoint:
        print_data(f"{point.value:18} {point.summary}")


@contextmanager
def fault_armed(environ: Mapping[str, str]) -> Generator[None]:
    """Arm what the environment asks for, until the block ends.

    Raises:
        CommandFailed: It asks for something that is no fault.
    """
    from gateway.telemetry.faults import VARIABLE, armed, parse

    text = environ.get(VARIABLE, "")
    try:
        fault = parse(text) if text else None
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    with armed(fault):
        yield
