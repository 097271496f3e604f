"""Where a browser is sent back to after a sign-in: which ports may be listened on, and the URL. Pure."""

from typing import Final
from urllib.parse import urlsplit

from mcp_host.oauth.cimd import PATH, PORTS
from mcp_host.oauth.config import OAuthConfig, is_loopback
from mcp_host.oauth.tokens import Client

ANY_PORT: Final = 0
_HTTP_PORT: Final = 80


def choose_ports(config: OAuthConfig, *, cimd: bool, stored: Client | None) -> tuple[int, ...]:
    """Return the ports to try, in this order; 0 is any free one.

    A port that the entry names is the only one. `cimd`: the server may be shown our document, whose
    ports then come first; on another port it cannot be used. A client that is `stored` keeps the
    port it was registered with when that is free.
    """
    named = _own_port(config) or config.redirect_port
    if named:
        return (named,)
    if cimd:
        return (*PORTS, ANY_PORT)
    before = None if stored is None else _port_here(stored.redirect_uri)
    return (ANY_PORT,) if before is None else (before, ANY_PORT)


def redirect_uri(config: OAuthConfig, port: int) -> str:
    """Return the URL for a port that is listened on: the entry's, to the letter, when it has one."""
    return config.redirect_uri or f"http://{config.redirect_host}:{port}{PATH}"


def redirect_path(config: OAuthConfig) -> str:
    """Return the path on which the answer comes in; a proxy hands it on as it is."""
    return (urlsplit(config.redirect_uri).path or "/") if config.redirect_uri else PATH


def _own_port(config: OAuthConfig) -> int | None:
    return _port_here(config.redirect_uri)


def _port_here(uri: str | None) -> int | None:
    """Return the port of a URL that leads straight to this machine, None for any other URL."""
    parts = urlsplit(uri or "")
    if parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        # We speak no TLS: an https address is a proxy's, also on this machine.
        return None
    return parts.port or _HTTP_PORT
