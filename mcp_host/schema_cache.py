"""What servers offered when they were last connected, kept on disk from one start to the next.

Written in a thread, whole and by renaming; a file that cannot be read is an empty one. Holds no
configuration: an entry is found by a hash of it, and another entry finds nothing.
"""

import asyncio
import json
import logging
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from gateway.domain.canonical import canonical, sha256_of
from mcp_host.catalog import Catalog, ListedTool, Stock, as_listed, read_tool
from mcp_host.server_config import ServerConfig

logger = logging.getLogger(__name__)

VERSION: Final = 1
MAX_BYTES: Final = 256 << 20
_ERAS: Final = ("legacy", "modern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a server offered, and the era of the protocol it spoke."""

    catalog: Catalog
    era: str


def cache_key(config: ServerConfig, *, identity: str = "") -> str:
    """Return the hash of a whole effective entry and of who we are to its server."""
    # As text: numbers and paths of any size have one.
    entry = json.dumps(config.model_dump(mode="json"), sort_keys=True)
    return sha256_of(canonical({"entry": entry, "identity": identity}))


class SchemaCache:
    """Remembers by server and key. Without a path it does so in this process only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries: dict[str, Mapping[str, object]] = _read(path) if path is not None else {}
        self._unwritten: dict[str, Mapping[str, object] | None] = {}
        self._news = asyncio.Event()
        self._writing = threading.Lock()

    def find(self, server: str, key: str) -> Known | None:
        """Return what this entry's server offered last, None when nobody knows."""
        entry = self._entries.get(server)
        return _known(entry) if entry is not None and entry.get("key") == key else None

    def asks(self, server: str, server_sha: str) -> bool:
        """Tell whether this very server, whatever else its entry says, asked without naming a call."""
        return bool(server_sha) and self._entries.get(server, {}).get("asks") == server_sha

    def keep(self, server: str, key: str, known: Known, *, asks: str = "") -> None:
        """Remember what the server offers now; returns at once.

        `asks` is who it is (`registry.server_sha`) if it asked without naming a call, else "".
        """
        entry = _entry(key, known, asks)
        if self._entries.get(server) != entry:
            self._entries[server] = entry
            self._change(server, entry)

    def forget(self, server: str) -> None:
        """Remember nothing of a server any more."""
        if self._entries.pop(server, None) is not None:
            self._change(server, None)

    async def run(self) -> None:
        """Write what changes as long as this runs."""
        while True:
            await self._news.wait()
            self._news.clear()
            await asyncio.to_thread(self.write)

    def write(self) -> None:
        """Write what changed since the last time; for a thread."""
        if self._path is None:
            return
        with self._writing:
            changes, self._unwritten = self._unwritten, {}
            if changes:
                _merge(self._path, changes)

    def _change(self, server: str, entry: Mapping[str, object] | None) -> None:
        if self._path is not None:
            self._unwritten[server] = entry
            self._news.set()


def _merge(path: Path, changes: Mapping[str, Mapping[str, object] | None]) -> None:
    # Another process may have written since: its servers stay.
    entries = {**_read(path), **changes}
    kept = {name: entry for name, entry in entries.items() if entry is not None}
    try:
        _replace(path, json.dumps({"version": VERSION, "servers": kept}))
    except OSError as error:
        logger.warning("%s cannot be written: %s", path, error.strerror)


def _read(path: Path) -> dict[str, Mapping[str, object]]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("it is too large")
        raw: object = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("%s is not used: %s", path, error)
        return {}
    file = _object(raw)
    if file.get("version") != VERSION:
        return {}
    servers = _object(file.get("servers"))
    return {name: _object(entry) for name, entry in servers.items()}


def _replace(path: Path, text: str) -> None:
    # Made with mode 0600 by itself.
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _entry(key: str, known: Known, asks: str) -> Mapping[str, object]:
    catalog = known.catalog
    return {
        "key": key,
        "asks": asks,
        "era": known.era,
        "resources": catalog.resources.value,
        "prompts": catalog.prompts.value,
        "problems": list(catalog.problems),
        "tools": [as_listed(tool) for tool in catalog.tools],
    }


def _known(entry: Mapping[str, object]) -> Known | None:
    era, listed, problems = entry.get("era"), entry.get("tools"), entry.get("problems")
    try:
        resources, prompts = Stock(entry.get("resources")), Stock(entry.get("prompts"))
    except ValueError:
        return None
    if era not in _ERAS or not isinstance(listed, list) or not isinstance(problems, list):
        return None
    tools = [read_tool(raw) for raw in cast("list[object]", listed)]
    catalog = Catalog(
        tools=tuple(tool for tool in tools if isinstance(tool, ListedTool)),
        problems=tuple(str(problem) for problem in cast("list[object]", problems)),
        resources=resources,
        prompts=prompts,
    )
    return Known(catalog=catalog, era=str(era))


def _object(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
