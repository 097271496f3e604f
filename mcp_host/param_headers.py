"""`x-mcp-header`: arguments of a tool that a 2026-07-28 server also wants as HTTP headers.

Knows which ones from the last list of tools; a tool whose wishes are invalid must not be offered.
"""

import logging
from collections.abc import Mapping
from typing import Any, cast

from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

from mcp_host.sanitize import show_name

logger = logging.getLogger(__name__)


class ParamHeaders:
    """The wishes of one session's tools, by the tool's own name."""

    def __init__(self) -> None:
        self._maps: dict[str, dict[tuple[str, ...], str]] = {}

    def take(self, page: dict[str, Any]) -> dict[str, Any]:
        """Learn from a page of a list of tools; return it without the tools that are invalid."""
        tools = page.get("tools")
        if not isinstance(tools, list):
            return page
        return {**page, "tools": [tool for tool in cast("list[object]", tools) if self._keep(tool)]}

    def of(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of a call."""
        wanted = self._maps.get(tool)
        return mcp_param_headers(wanted, arguments) if wanted else {}

    def _keep(self, tool: object) -> bool:
        fields = cast("dict[str, object]", tool) if isinstance(tool, dict) else {}
        name, schema = fields.get("name"), fields.get("inputSchema")
        if not isinstance(name, str):
            # Others say what is wrong with it.
            return True
        self._maps.pop(name, None)
        if find_invalid_x_mcp_header(schema) is not None:
            shown = show_name(name, limit=100)
            logger.warning('tool "%s" is left out: its x-mcp-header is invalid', shown)
            return False
        self._maps[name] = x_mcp_header_map(schema)
        return True
