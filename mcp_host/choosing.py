"""Changes a filter so that exactly the wanted tools pass it. Pure; what it need not touch it keeps.

A pattern that decides about no tool whose place changes stays as it was written.
"""

import glob
from collections.abc import Collection, Iterable, Sequence

from mcp_host.filters import ToolFilter, first_match


def choose(before: ToolFilter, names: Sequence[str], wanted: Collection[str]) -> ToolFilter:
    """Return the filter that admits the wanted ones of these names, and none of the others.

    With all of them wanted nothing is listed by name: a tool that comes later is wanted too.
    """
    off = [name for name in names if name not in wanted]
    on = [name for name in names if name in wanted]
    if before.include is not None and (off or all(map(before.admits, names))):
        kept = _without(before.include, names, drop=off)
        return ToolFilter(include=(*kept, *_missing(kept, on)), exclude=before.exclude)
    kept = _without(before.exclude, names, drop=on)
    return ToolFilter(exclude=(*kept, *_missing(kept, off)))


def _without(
    patterns: Iterable[str], names: Sequence[str], *, drop: Collection[str]
) -> tuple[str, ...]:
    """Put in the place of each pattern that matches one to drop the other names it matches."""
    kept: list[str] = []
    for pattern in patterns:
        matched = [name for name in names if first_match((pattern,), name) is not None]
        if any(name in drop for name in matched):
            kept += [_literal(name) for name in matched if name not in drop]
        else:
            kept.append(pattern)
    return tuple(dict.fromkeys(kept))


def _missing(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    return [_literal(name) for name in names if first_match(patterns, name) is None]


def _literal(name: str) -> str:
    """Return the pattern for this name alone."""
    return glob.escape(name)
