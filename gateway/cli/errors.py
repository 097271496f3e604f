"""How a call of `hermes` ends: its exit code, and one sentence instead of a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum
from typing import TYPE_CHECKING, cast

import typer

from gateway.cli.output import drop_output, say
from gateway.domain.errors import GatewayError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.cli.invocation import Invocation
    from gateway.telemetry.redact import Redactor


class ExitCode(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    INTERRUPTED = 130


class CommandFailed(GatewayError):
    """A command could not do what was asked; the sentence is for the person who asked."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)

    @property
    def public_message(self) -> str:
        """Return the sentence."""
        return str(self)


class NoSuch(CommandFailed):
    """What a command names does not exist: exit code 3."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} {name}")


def guarded(run: Callable[[], object], invocation: Invocation) -> int:
    """Run a call to its exit code; a person's mistake is a sentence, a fault of ours is logged."""
    try:
        result = run()
        sys.stdout.flush()
    except typer.TyperException as mistake:
        _show_mistake(mistake)
        return mistake.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    # This is the last boundary there is: every fault of ours ends here, in the log.
    except Exception as fault:  # noqa: BLE001
        return _end(fault, invocation)
    return result if isinstance(result, int) else ExitCode.DONE


def _end(fault: Exception, invocation: Invocation) -> int:
    reason = _reason(fault)
    redactor = _redactor(invocation)
    if os.environ.get("HERMES_DEBUG") == "1":
        say(redactor.redact("".join(traceback.format_exception(fault))))
    if isinstance(reason, GatewayError):
        sentence = " ".join(reason.public_message.split("\n"))
        say(f"hermes: {redactor.redact(sentence)}")
        return ExitCode.NOT_FOUND if isinstance(reason, NoSuch | NotFound) else ExitCode.FAILED
    where = _log(fault, invocation, redactor)
    say(f"hermes: something went wrong on our side ({type(reason).__name__}); {where}")
    return ExitCode.FAILED


def _reason(fault: BaseException) -> BaseException:
    """Return what a group of faults comes down to: a task group wraps even a single one."""
    while isinstance(fault, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", fault)
        told = [inner for inner in group.exceptions if isinstance(_reason(inner), GatewayError)]
        fault = (told or group.exceptions)[0]
    return fault


def _show_mistake(mistake: typer.TyperException) -> None:
    show = getattr(mistake, "show", None)
    if callable(show):
        show()
    else:
        say(f"hermes: {mistake.message}")


def _redactor(invocation: Invocation) -> Redactor:
    from gateway.config.dotenv import read_env_file
    from gateway.telemetry.redact import Redactor

    redactor = Redactor(invocation.secrets)
    try:
        redactor.add(read_env_file(invocation.home().env_file).variables.values())
    except GatewayError:
        # Without a home there are no secrets of one.
        return redactor
    return redactor


def _log(fault: Exception, invocation: Invocation, redactor: Redactor) -> str:
    """Write the traceback to the log; return where a person finds it."""
    import logging

    from gateway.telemetry.config import LoggingConfig
    from gateway.telemetry.logging import set_up

    try:
        home = invocation.home()
        home.create()
        with set_up(LoggingConfig(), redactor=redactor, logs=home.logs, stream=None):
            logging.getLogger("gateway.cli").error("a command failed", exc_info=fault)
    except (GatewayError, OSError):
        return "set HERMES_DEBUG=1 to see the detail"
    return f"the detail is in {home.gateway_log}"


def _reader_left() -> int:
    """End quietly when nobody reads our output any more (`hermes … | head`)."""
    drop_output()
    return ExitCode.FAILED
