"""Makes an entry of `mcp_servers` from what a command line says. Reads and writes nothing."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

PRESETS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {"codex": ("codex", ("mcp-server",))}
"""The command and the arguments of servers that many people have (SPEC §13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody asked for; None and empty is what was not said."""

    url: str | None = None
    command: str | None = None
    args: Sequence[str] | None = None
    env: Sequence[str] = ()
    headers: Sequence[str] = ()
    auth: str | None = None
    preset: str | None = None
    trust: str | None = None


class Unfit(Exception):
    """What was asked for makes no entry: `option` is to blame, the text says why."""

    def __init__(self, option: str, why: str) -> None:
        super().__init__(why)
        self.option = option


def entry_from(wanted: Wanted) -> dict[str, object]:
    """Return the entry; what was said comes before what the preset would say.

    Raises:
        Unfit: It names no server, two, or something that does not belong to its transport.
    """
    command, args = _program(wanted)
    if (command is None) == (wanted.url is None):
        raise Unfit("--url", "give either --url or --command (or a --preset)")
    entry = _reached(wanted, args) if command is None else _started(wanted, command, args)
    if wanted.trust is not None:
        entry["trust"] = wanted.trust
    return entry


def shown(entry: Mapping[str, object]) -> str:
    """Return what an entry starts or reaches, as one would type it."""
    if "url" in entry:
        return str(entry["url"])
    args = cast("list[str]", entry.get("args", []))
    return shlex.join([str(entry["command"]), *args])


def _started(wanted: Wanted, command: str, args: Sequence[str]) -> dict[str, object]:
    if wanted.headers or wanted.auth:
        option = "--header" if wanted.headers else "--auth"
        raise Unfit(option, "belongs to a server with a --url")
    entry: dict[str, object] = {"command": command}
    if args:
        entry["args"] = list(args)
    if wanted.env:
        entry["env"] = _pairs(wanted.env, "--env", "=", "KEY=VALUE")
    return entry


def _reached(wanted: Wanted, args: Sequence[str]) -> dict[str, object]:
    if wanted.env or args:
        option = "--env" if wanted.env else "--args"
        raise Unfit(option, "belongs to a server with a --command")
    if wanted.auth == "header" and not wanted.headers:
        raise Unfit("--auth", "header needs the --header that holds the credentials")
    entry: dict[str, object] = {"url": wanted.url}
    if wanted.headers:
        entry["headers"] = _pairs(wanted.headers, "--header", ":", "'Name: value'")
    if wanted.auth == "oauth":
        entry["auth"] = "oauth"
    return entry


def _program(wanted: Wanted) -> tuple[str | None, Sequence[str]]:
    if wanted.preset is None:
        return wanted.command, wanted.args or ()
    if wanted.url is not None:
        raise Unfit("--preset", "is a command, and you gave a --url")
    if wanted.preset not in PRESETS:
        raise Unfit("--preset", f"there are: {', '.join(PRESETS)}")
    command, args = PRESETS[wanted.preset]
    if wanted.command is not None:
        return wanted.command, wanted.args or ()
    return command, args if wanted.args is None else wanted.args


def _pairs(texts: Sequence[str], option: str, mark: str, shape: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, present, value = text.partition(mark)
        if not present or not name.strip():
            raise Unfit(option, f"is written {shape}")
        found[name.strip()] = value.strip() if mark == ":" else value
    return found
