"""A command whose `--args` takes the rest of the line as it is, and whose `--env` takes several values."""

import re
from collections.abc import Sequence
from typing import Final

import typer
from typer.core import TyperCommand

REST: Final = "--args"
_SEVERAL: Final = "--env"
_PAIR: Final = re.compile(r"[^-=][^=]*=.*", re.DOTALL)
_KEY: Final = "hermes.rest_of_line"


class RestOfLine(TyperCommand):
    """What stands behind the first `--args` is never parsed: it is another program's."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Parse what stands before `--args`, and keep the rest."""
        ours, rest = split(args)
        ctx.meta[_KEY] = rest
        return super().parse_args(ctx, ours)


def rest_of(ctx: typer.Context) -> tuple[str, ...] | None:
    """Return what stood behind `--args`, None without one."""
    found: tuple[str, ...] | None = ctx.meta[_KEY]
    return found


def split(args: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Return our own arguments, with one `--env` for each pair, and the rest of the line.

    One leading `--` of the rest is dropped.
    """
    rest: tuple[str, ...] | None = None
    ours = list(args)
    if REST in ours:
        at = ours.index(REST)
        rest = tuple(ours[at + 1 :])
        rest = rest[1:] if rest[:1] == ("--",) else rest
        ours = ours[:at]
    spread: list[str] = []
    several = False
    for before, word in zip(["", *ours], ours, strict=False):
        if several and before != _SEVERAL:
            several = _PAIR.fullmatch(word) is not None
            spread += [_SEVERAL] if several else []
        several = several or word == _SEVERAL
        spread.append(word)
    return spread, rest
