"""The names tools have outside their server. Decides no collisions; the registry does."""

import hashlib
import re
from typing import Final

MAX_ALIAS: Final = 64
"""The longest function name that model APIs take."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_]")
_HASH_CHARACTERS: Final = 8


def alias_for(server: str, tool: str) -> str:
    """Return `mcp__<server>__<tool>` in `[A-Za-z0-9_]`, at most 64 characters, the same for ever."""
    alias = f"mcp__{_safe(server)}__{_safe(tool)}"
    return alias if len(alias) <= MAX_ALIAS else _cut(alias, server, tool)


def older_alias_for(server: str, tool: str) -> str:
    """Return the single-underscore form that older guides use; understood, never offered."""
    return f"mcp_{_safe(server)}_{_safe(tool)}"


def toolset_for(server: str) -> str:
    """Return the name of all tools of a server together, as access rules use it."""
    return f"mcp-{server}"


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _cut(alias: str, server: str, tool: str) -> str:
    identity = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(identity).hexdigest()[:_HASH_CHARACTERS]
    return f"{alias[: MAX_ALIAS - _HASH_CHARACTERS - 1]}_{digest}"
