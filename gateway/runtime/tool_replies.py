"""What `/tools`, `/mcp` and `/reload-mcp` answer. The words for servers are in `server_replies`."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from gateway.domain.errors import GatewayError
from gateway.domain.ids import Actor, Place
from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.tools import Reloaded, ToolSpec
from gateway.ports import Clock, ToolHost
from gateway.runtime.access import Access
from gateway.runtime.cards import one_line
from gateway.runtime.command_replies import Replies
from gateway.runtime.server_replies import server_detail, server_line
from gateway.runtime.toolsets import narrowed

logger = logging.getLogger(__name__)

RELOAD_SECONDS: Final = 30.0
MAX_TOOLS: Final = 40
MAX_HITS: Final = 10
MAX_SUMMARY: Final = 120
MAX_QUERY: Final = 500


class ToolReplies:
    """Which tools and servers there are; reading their configuration anew."""

    def __init__(self, host: ToolHost, access: Access, clock: Clock) -> None:
        self._host = host
        self._access = access
        self._clock = clock

    @property
    def replies(self) -> Replies:
        """What answers each of its commands."""
        return {"tools": self._tools, "mcp": self._mcp, "reload-mcp": self._reload}

    async def _tools(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        query = event.argument.strip()[:MAX_QUERY]
        host = narrowed(self._host, event.toolsets)
        if query:
            found = [hit.spec for hit in host.search(query, limit=MAX_HITS)]
        else:
            found = sorted(host.tools(), key=lambda spec: (spec.server, spec.name))
        seen = [spec for spec in found if self._may_use(spec, event.sender, event.place)]
        if not seen:
            return (
                f"No tool matches {one_line(query)}." if query else "There are no tools yet. /mcp"
            )
        lines = [f"`{spec.alias}`: {_summary(spec)}" for spec in seen[:MAX_TOOLS]]
        more = len(seen) - MAX_TOOLS
        if more > 0:
            lines.append(f"{more} more: narrow it with `/tools QUERY`")
        return "\n".join(f"- {line}" for line in lines)

    def _may_use(self, spec: ToolSpec, actor: Actor, place: Place) -> bool:
        return self._access.may_use(actor, alias=spec.alias, server=spec.server, place=place)

    async def _mcp(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        servers = self._host.servers()
        wanted = event.argument.strip()
        if not wanted:
            lines = [server_line(item) for item in servers]
            return "\n".join(f"- {line}" for line in lines) or "No MCP server is configured."
        found = next((item for item in servers if item.name == wanted), None)
        if found is None:
            return _no_server(wanted, [item.name for item in servers])
        return server_detail(found)

    async def _reload(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        name = event.argument.strip() or None
        known = [item.name for item in self._host.servers()]
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(RELOAD_SECONDS):
                reloaded = await self._host.reload(name)
                return _reloaded(reloaded, seconds=self._clock.monotonic() - began)
        except TimeoutError:
            return f"Not done after {RELOAD_SECONDS:.0f} s; /mcp shows how far it is."
        except GatewayError as error:
            logger.warning("reload failed: %s", error)
            if name is not None and name not in known:
                return _no_server(name, known)
            return f"Nothing was reloaded: {one_line(error.public_message, MAX_QUERY)}"


def _no_server(name: str, known: Sequence[str]) -> str:
    listed = ", ".join(one_line(item) for item in known)
    return f"There is no MCP server {one_line(name)}. Known: {listed or 'none'}."


def _summary(spec: ToolSpec) -> str:
    return one_line(spec.title or spec.description or spec.name, MAX_SUMMARY)


def _reloaded(reloaded: Reloaded, *, seconds: float) -> str:
    parked = [f"{name} ({one_line(reason, MAX_SUMMARY)})" for name, reason in reloaded.parked]
    lists = {
        "added": reloaded.added,
        "removed": reloaded.removed,
        "changed": reloaded.changed,
        "parked": parked,
    }
    said = [f"{word}: {', '.join(names)}" for word, names in lists.items() if names]
    return (
        f"Reloaded in {seconds:.1f} s. "
        + ("; ".join(said) if said else "Nothing has changed")
        + "."
    )
