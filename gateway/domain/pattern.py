"""Judges whether a regular expression from outside may be tried without risking a long search.

Python's `re` tries one way after another and holds the interpreter meanwhile: a pattern like
`(a+)+$` could stop the whole process. This only estimates; in doubt it refuses.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, TypeAlias, TypeGuard

MAX_PATTERN: Final = 500
"""Characters of a pattern that is looked at."""

MAX_STEPS: Final = 25_000_000
"""Steps a search may have to take: half a second at the most."""

_MAX_DEPTH: Final = 20
_TOKEN: Final = re.compile(
    r"""
    (?P<open>\((?:\?:)?)
    | (?P<close>\))
    | (?P<either>\|)
    | (?P<repeat>(?:[*+?]|\{(?P<low>\d*)(?P<range>,(?P<high>\d*))?\})[?+]?)
    | (?P<start>\^|\\A)
    | (?P<end>\$|\\Z)
    | (?P<edge>\\[bB])
    | (?P<atom>\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^0-9uUxN])|[^\\])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True, kw_only=True)
class _Item:
    """One step of a sequence: an atom, an assertion (`start`, `end`, `edge`) or a group."""

    kind: str
    text: str = ""
    branches: "tuple[_Sequence, ...]" = ()
    low: int = 1
    high: int | None = 1

    @property
    def literal(self) -> str | None:
        """The one character a plain atom stands for."""
        if self.kind != "atom" or self.text in (".", ""):
            return None
        if len(self.text) == 1:
            return self.text
        escaped = self.text[1:] if self.text.startswith("\\") else ""
        return escaped if len(escaped) == 1 and not escaped.isalnum() else None

    @property
    def must_come(self) -> bool:
        return self.kind == "atom" and self.low >= 1


_Sequence: TypeAlias = "tuple[_Item, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effort:
    """In how many ways a part may match, and how many steps it takes to try them all."""

    ways: float = 1
    steps: float = 1


_ONCE: Final = _Effort()


class _Refused(Exception):
    """It uses what the estimate does not cover."""


def bounded_pattern(pattern: object, *, length: int) -> TypeGuard[str]:
    """Tell whether `re.search` of this pattern ends soon for any text of that length."""
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        return False
    try:
        re.compile(pattern)
        branches = _branches(_tokens(pattern), depth=0)
        effort = _effort_of_branches(branches, length)
    except (re.error, RecursionError, OverflowError, _Refused):
        return False
    anchored = all(branch and branch[0].kind == "start" for branch in branches)
    return effort.steps * (1 if anchored else length) <= MAX_STEPS


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            raise _Refused
        yield token
        at = token.end()


def _branches(tokens: Iterator[re.Match[str]], *, depth: int) -> tuple[_Sequence, ...]:
    if depth > _MAX_DEPTH:
        raise _Refused
    branches: list[list[_Item]] = [[]]
    for token in tokens:
        match token.lastgroup:
            case "open":
                inner = _branches(tokens, depth=depth + 1)
                branches[-1].append(_Item(kind="group", branches=inner))
            case "close":
                break
            case "either":
                branches.append([])
            case "low" | "range" | "high" | "repeat":
                _repeat(branches[-1], token)
            case kind:
                branches[-1].append(_Item(kind=str(kind), text=token[0]))
    return tuple(tuple(branch) for branch in branches)


def _repeat(sequence: list[_Item], token: re.Match[str]) -> None:
    text = token["repeat"]
    # A `?` right behind `(` starts an extension of which only `(?:` is covered.
    if not sequence or text.startswith("{}"):
        raise _Refused
    item = sequence[-1]
    match text[0]:
        case "*":
            item.low, item.high = 0, None
        case "+":
            item.low, item.high = 1, None
        case "?":
            item.low, item.high = 0, 1
        case _:
            item.low = int(token["low"] or 0)
            item.high = (
                int(token["high"]) if token["high"] else None if token["range"] else item.low
            )


def _effort_of_branches(branches: tuple[_Sequence, ...], length: int) -> _Effort:
    efforts = [_effort(branch, length) for branch in branches]
    ways = (effort.ways for effort in efforts)
    return _Effort(
        ways=max(ways) if _told_apart(branches) else sum(ways),
        steps=sum(effort.steps for effort in efforts),
    )


def _effort(sequence: _Sequence, length: int) -> _Effort:
    ways, steps = 1.0, 1.0
    for item, following in zip_longest(sequence, sequence[1:]):
        effort = _effort_of_item(item, following, length)
        # Behind every way so far, this item is tried anew.
        steps += ways * effort.steps
        ways *= effort.ways
    return _Effort(ways=ways, steps=steps)


def _effort_of_item(item: _Item, following: _Item | None, length: int) -> _Effort:
    if item.kind not in ("atom", "group"):
        return _ONCE
    inner = _effort_of_branches(item.branches, length) if item.kind == "group" else _ONCE
    high = length if item.high is None else min(item.high, length)
    if item.low == item.high:
        ways = inner.ways**high if inner.ways < MAX_STEPS else math.inf
        return _Effort(ways=ways, steps=inner.steps * max(1, high) * ways)
    # The rounds of a run share the text, so together they cost its length.
    spread = max(1, high - item.low + 1)
    steps = high + inner.steps
    if item.kind == "atom" and following is not None and _stops(item, following):
        return _Effort(ways=1, steps=steps)
    if inner.ways == 1:
        return _Effort(ways=spread, steps=steps)
    if high <= 1:
        return _Effort(ways=inner.ways + 1, steps=steps)
    if not _is_separated(item, length):
        return _Effort(ways=math.inf, steps=math.inf)
    # Where its rounds begin is given, so a way is told by where the last one ends.
    return _Effort(ways=length, steps=steps)


def _stops(item: _Item, following: _Item) -> bool:
    """Tell whether a run of `item` can end in one place only."""
    if following.kind == "end":
        return True
    return following.must_come and _apart(item, following)


def _is_separated(group: _Item, length: int) -> bool:
    """Tell whether the rounds of a repeated group (`(?:-[a-z]+)*`) can only begin in one place."""
    if len(group.branches) != 1:
        return False
    first, *rest = group.branches[0] or (group,)
    if first.literal is None or (first.low, first.high) != (1, 1):
        return False
    if not all(item.kind == "atom" and _apart(first, item) for item in rest):
        return False
    efforts = [_effort_of_item(*pair, length) for pair in zip_longest(rest, rest[1:])]
    return sum(effort.ways > 1 for effort in efforts) <= 1


def _told_apart(branches: tuple[_Sequence, ...]) -> bool:
    firsts = [branch[0] if branch else None for branch in branches]
    return all(
        one is not None
        and other is not None
        and one.must_come
        and other.must_come
        and _apart(one, other)
        for index, one in enumerate(firsts)
        for other in firsts[index + 1 :]
    )


def _apart(one: _Item, other: _Item) -> bool:
    """Tell whether no character fits both atoms; known only when one is a plain character."""
    if one.literal is not None:
        return re.fullmatch(other.text, one.literal, re.DOTALL) is None
    if other.literal is not None:
        return re.fullmatch(one.text, other.literal, re.DOTALL) is None
    return False
