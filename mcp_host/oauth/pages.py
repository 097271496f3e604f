"""Which addresses a person may be sent to with a browser."""

from urllib.parse import urlsplit

from gateway.domain.errors import ToolHostError
from mcp_host.oauth.config import is_loopback


def page_to_open(server: str, url: str) -> str:
    """Return the address of a page that a person may be sent to.

    Raises:
        ToolHostError: It is none: no https, and not this machine.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host, parts = "", urlsplit("")
    local = parts.scheme == "http" and is_loopback(host)
    if not host or not (parts.scheme == "https" or local) or not url.isprintable():
        raise ToolHostError(server, "its sign-in page is at no https address: not opened")
    return url
