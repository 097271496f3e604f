"""What `hermes gateway setup` asks at a terminal: one question each, asked again until it is answered."""

import getpass
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import typer

from gateway.cli.output import say
from gateway.domain.errors import ConfigError

if TYPE_CHECKING:
    from gateway.app.setups import PlatformSetup
    from gateway.providers.config import ModelConfig

NONE: Final = "none"

Answer = TypeVar("Answer")


def which_platform(known: Sequence[str]) -> str:
    """Ask for a platform; the only one there is goes without saying."""
    if len(known) == 1:
        return known[0]

    def read(answer: str) -> str:
        if answer not in known:
            raise ValueError(f"known are {', '.join(known)}")
        return answer

    return _ask(f"Which platform ({', '.join(known)})", read)


def secret(prompt: str, *, optional: bool = False) -> str:
    """Ask for something that is not shown while it is typed."""
    how = "not shown; empty for none" if optional else "not shown"

    def read(answer: str) -> str:
        if not answer and not optional:
            raise ValueError("it is needed")
        if not (answer.isascii() and answer.isprintable()):
            raise ValueError("it holds a character that none has")
        return answer

    return _ask(f"{prompt} ({how})", read, hidden=True)


def people(prompt: str, platform: "PlatformSetup", *, known: Sequence[str] = ()) -> list[str]:
    """Ask for ids of people; `known` are the ones that may be named, none is any."""

    def read(answer: str) -> list[str]:
        found = answer.replace(",", " ").split()
        for person in found:
            if not platform.is_person(person) or (known and person not in known):
                raise ValueError(f"{person} is not one of them: {platform.people}")
        return found

    return _ask(prompt, read)


def model(now: str) -> "ModelConfig | str":
    """Ask for a model; "" is what there is `now`, `NONE` is none."""
    from gateway.providers.config import parse_model

    def read(answer: str) -> "ModelConfig | str":
        if answer in {"", NONE}:
            return answer
        try:
            return parse_model(answer)
        except ConfigError as problem:
            raise ValueError(problem.problem) from problem

    there = f"empty keeps {now}, {NONE} for none" if now else "empty for none: the guided mode"
    return _ask(f"Model, as provider:name ({there})", read)


def _ask(prompt: str, read: Callable[[str], Answer], *, hidden: bool = False) -> Answer:
    while True:
        answer = _hidden(prompt) if hidden else _typed(prompt)
        try:
            return read(answer.strip())
        except ValueError as problem:
            say(f"not understood: {problem}")


def _typed(prompt: str) -> str:
    return str(typer.prompt(prompt, default="", show_default=False, err=True))


def _hidden(prompt: str) -> str:
    """Ask without an echo, which typer's own prompt leaves on until it has shown its text."""
    try:
        return getpass.getpass(f"{prompt}: ", stream=sys.stderr)
    except EOFError as end:
        raise typer.Abort from end
