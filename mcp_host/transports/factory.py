"""Chooses the way to a server by its configuration."""

from typing import TYPE_CHECKING

from mcp_host.network_config import Transport
from mcp_host.server_config import ServerConfig
from mcp_host.stderr import WriteLine
from mcp_host.transports.base import OpenLink
from mcp_host.transports.guard import ProcessGuard

if TYPE_CHECKING:
    from mcp_host.oauth.bearer import TokenSource


def link_opener(
    server: str,
    config: ServerConfig,
    *,
    guard: ProcessGuard,
    write_stderr: WriteLine,
    tokens: "TokenSource | None" = None,
) -> OpenLink:
    """Return what opens a new link to the server each time it is called.

    `tokens` are sent to a server at a URL, None for one that wants none.
    """
    # Imported when a server is there: both bring in the SDK.
    if config.transport is Transport.STDIO:
        from mcp_host.transports.stdio import Command, open_stdio

        command = Command(command=config.command, args=config.args, env=config.env, cwd=config.cwd)
        return lambda: open_stdio(server, command, guard=guard, write_stderr=write_stderr)
    from mcp_host.transports.remote import Remote

    return Remote(server, config, tokens).open
