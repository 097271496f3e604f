"""What a server's process may see of our environment: a safe baseline and its own `env`.

Knows no secrets and no configuration; decides by name alone.
"""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BASELINE: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_*",
    "TERM",
    "SHELL",
    "TMPDIR",
    "TZ",
    "XDG_*",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
)
"""Names and patterns that pass; the last fourteen mean something on Windows alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnvironment:
    """The variables of the child, and the names of ours it does not get."""

    variables: Mapping[str, str]
    withheld: tuple[str, ...]


def child_environment(
    ours: Mapping[str, str], *, configured: Mapping[str, str]
) -> ChildEnvironment:
    """Return the baseline of `ours` with `configured` on top."""
    passed = {name: value for name, value in ours.items() if _safe(name, value)}
    variables = {**passed, **configured}
    withheld = tuple(sorted(name for name in ours if name not in variables))
    return ChildEnvironment(variables=variables, withheld=withheld)


def _safe(name: str, value: str) -> bool:
    # A value that is a shell function would be run by an old bash in the child.
    if value.startswith("()"):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in BASELINE)
