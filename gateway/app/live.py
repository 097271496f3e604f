"""The servers' configuration while a process runs: read anew, reported once, applied.

The host asks `LiveServers` for what holds, whoever wanted the reload; the watch asks the host.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from gateway.domain.tools import Reloaded
from gateway.ports import Clock

if TYPE_CHECKING:
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.domain.findings import Finding
    from gateway.telemetry.redact import Redactor
    from mcp_host.server_config import ServerConfig

logger = logging.getLogger(__name__)


class Kept(Protocol):
    """What is kept current: the host."""

    async def reload(self) -> Reloaded: ...

    def look_at_sign_ins(self) -> None: ...


class LiveServers:
    """The entries of `mcp_servers` that hold; those of a broken file are the last good ones."""

    def __init__(
        self, home: "Home", loaded: "Loaded", environ: Mapping[str, str], redactor: "Redactor"
    ) -> None:
        from gateway.config.load import Reloader

        self._reloader = Reloader(home, environ=environ, loaded=loaded)
        self._redactor = redactor
        # Whoever loaded it first has told these.
        self._told = loaded.findings.items
        self._report(loaded)

    @property
    def servers(self) -> "Mapping[str, ServerConfig]":
        """What holds, without reading anything."""
        return self._reloader.current.config.mcp_servers

    @property
    def problems(self) -> "tuple[Finding, ...]":
        """Why the file is not in force as it is written; empty when it is."""
        return self._reloader.current.findings.errors

    @property
    def stale(self) -> bool:
        """True when the whole file could not be used, and an older one holds."""
        return self._reloader.current.stale

    def load(self) -> "Mapping[str, ServerConfig]":
        """Read the files and return what holds now; each finding is logged once. Raises nothing."""
        current = self._reloader.reload()
        self._redactor.add(current.secrets)
        self._report(current)
        return current.config.mcp_servers

    def edited(self) -> bool:
        """Read the files and say whether anything is different; who applies that logs it."""
        before = self._reloader.current
        current = self._reloader.reload()
        return (current.config.mcp_servers, current.findings) != (
            before.config.mcp_servers,
            before.findings,
        )

    def _report(self, current: "Loaded") -> None:
        found = current.findings.items
        for finding in found:
            if finding not in self._told:
                logger.warning("configuration: %s: %s", finding.path, finding.message)
        self._told = found
        logger.info("%s", _summary(current))


@asynccontextmanager
async def keeping_current(
    home: "Home", live: LiveServers, host: Kept, clock: Clock, *, enabled: bool
) -> AsyncGenerator[None]:
    """Inside the block, have the host apply each change of the configuration and each new login.

    Without `enabled` the configuration is left alone, and logins alone are taken up.
    """
    watch = asyncio.create_task(_watch(home, live, host, clock, enabled), name="config:watch")
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.wait({watch})


async def _watch(
    home: "Home",
    live: LiveServers,
    host: Kept,
    clock: Clock,
    enabled: bool,
) -> None:
    from gateway.config.watch import ConfigWatch

    async def changed() -> None:
        if not enabled:
            return
        try:
            _tell(await host.reload())
        except Exception:
            # The next change must still be heard.
            logger.exception("a change of the configuration could not be applied")

    watch = ConfigWatch(home, clock)
    if live.edited():
        # While we started.
        await changed()
    await watch.run(changed, beside=host.look_at_sign_ins)


def _tell(done: Reloaded) -> None:
    parts = {"added": done.added, "changed": done.changed, "removed": done.removed}
    said = [f"{what} {', '.join(names)}" for what, names in parts.items() if names]
    if said:
        logger.info("MCP servers: %s", "; ".join(said))


def _summary(current: "Loaded") -> str:
    """Say how many entries can be used, and why the others cannot."""
    from gateway.app.servers import entries

    found = entries(current)
    skipped = [f"{entry.name}: {entry.problem}" for entry in found if entry.config is None]
    why = f" ({'; '.join(skipped)})" if skipped else ""
    return f"mcp_servers: {len(found) - len(skipped)} ok, {len(skipped)} skipped{why}"
