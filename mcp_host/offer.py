"""Asks a live session for everything its server offers. Decides nothing about it."""

import dataclasses
from collections.abc import Mapping
from typing import Final, cast

from mcp import MCPError

from mcp_host.catalog import Catalog, Kind, Stock, read_tools
from mcp_host.server_config import ToolsConfig
from mcp_host.session import HostSession

_LISTS: Final[Mapping[Kind, tuple[tuple[str, str], ...]]] = {
    Kind.RESOURCES: (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ),
    Kind.PROMPTS: (("prompts/list", "prompts"),),
}
"""The lists that show whether there is anything of a kind: how to ask, and where the answer is."""


async def read_offer(session: HostSession, config: ToolsConfig) -> Catalog:
    """Read every tool, and whether there are resources and prompts, where that matters.

    Raises:
        MCPError: The tools could not be listed.
    """
    catalog = await _tools(session)
    return dataclasses.replace(
        catalog,
        resources=await _stock(session, Kind.RESOURCES, config.resources),
        prompts=await _stock(session, Kind.PROMPTS, config.prompts),
    )


def changing_lists(session: HostSession) -> tuple[str, ...]:
    """Name the lists of which the server says that it tells of their changes."""
    offered = session.server_capabilities
    if offered is None:
        return ()
    lists = {"tools": offered.tools, "prompts": offered.prompts, "resources": offered.resources}
    return tuple(name for name, one in lists.items() if one is not None and one.list_changed)


async def _tools(session: HostSession) -> Catalog:
    async def ask_page(cursor: str | None) -> Mapping[str, object]:
        return await session.request("tools/list", {"cursor": cursor} if cursor else None)

    capabilities = session.server_capabilities
    try:
        return await read_tools(ask_page)
    except MCPError:
        # A server without tools need not know the method; some have tools and forget to say so.
        if session.closed or capabilities is None or capabilities.tools is not None:
            raise
        return Catalog()


async def _stock(session: HostSession, kind: Kind, wanted: bool | None) -> Stock:
    capabilities = session.server_capabilities
    if wanted is False or capabilities is None:
        return Stock.NONE
    offered = {Kind.RESOURCES: capabilities.resources, Kind.PROMPTS: capabilities.prompts}
    if offered[kind] is None:
        return Stock.NONE
    if wanted:
        # Nobody needs to know what is in it.
        return Stock.FULL
    for method, field in _LISTS[kind]:
        try:
            listed = (await session.request(method)).get(field)
        except MCPError:
            if session.closed:
                raise
            return Stock.FULL
        if not isinstance(listed, list) or cast("list[object]", listed):
            return Stock.FULL
    return Stock.EMPTY
