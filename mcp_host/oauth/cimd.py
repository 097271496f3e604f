"""The document that says who we are (CIMD): its URL is our client id, and servers fetch it.

Somebody hosts it; nothing here does. What a server would refuse without a word, in a page of its
own, is refused here first, with the rule.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from mcp_host.oauth.fetch import Fetcher

PORTS: Final = (27890, 27891, 27892, 27893, 27894)
"""Where a browser comes back to: the document names each, so no other one will do."""

HOSTS: Final = ("127.0.0.1", "localhost")
PATH: Final = "/callback"

_DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


class BadDocument(ValueError):
    """A rule is broken; the text says which, as the end of a sentence about the URL."""


def check_url(url: str) -> str:
    """Return the URL of a document when it can be a client id.

    Raises:
        BadDocument: It cannot.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadDocument("is no URL") from None
    if parts.scheme != "https" or not host:
        raise BadDocument("must begin with https:// and a host")
    if parts.path in {"", "/"}:
        raise BadDocument("must have a path behind its host")
    if "#" in url:
        raise BadDocument("must have no fragment (#…)")
    if "@" in parts.netloc:
        raise BadDocument("must have no user before its host")
    if any(_DOTS.fullmatch(segment) for segment in parts.path.split("/")):
        raise BadDocument("must have no . or .. in its path")
    if not url.isascii() or re.search(r"[\s\\\x00-\x20\x7f]", url):
        raise BadDocument("must have no spaces and no letters beyond ASCII")
    return url


def redirect_uris() -> tuple[str, ...]:
    """Return the ten addresses that a document must name, spelled exactly so."""
    return tuple(f"http://{host}:{port}{PATH}" for host in HOSTS for port in PORTS)


def document(url: str, *, name: str = "Hermes Gateway") -> Mapping[str, object]:
    """Return what to host at a URL.

    Raises:
        BadDocument: The URL can be no client id.
    """
    return {
        "client_id": check_url(url),
        "client_name": name,
        "redirect_uris": list(redirect_uris()),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }


async def check_document(fetcher: "Fetcher", url: str) -> None:
    """Look at what is hosted at a URL, as an authorization server will.

    Raises:
        BadDocument: A rule is broken.
        ToolHostError: It may not be reached from here, or is too large.
        ServerUnavailable: It cannot be reached from here now.
    """
    fetched = await fetcher.look(check_url(url))
    if 300 <= fetched.status < 400:
        raise BadDocument(f"redirects (HTTP {fetched.status}), which no server may follow")
    if fetched.status != 200:
        raise BadDocument(f"answers HTTP {fetched.status}, and must answer 200")
    kind = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadDocument("must come as application/json")
    described = fetched.json_object()
    if described is None:
        raise BadDocument("holds no JSON object")
    if described.get("client_id") != url:
        raise BadDocument("must have its own URL as client_id, letter by letter")
    named: object = described.get("redirect_uris")
    known = cast("list[object]", named) if isinstance(named, list) else []
    missing = [uri for uri in redirect_uris() if uri not in known]
    if missing:
        raise BadDocument(f"lacks {', '.join(missing)} among its redirect_uris")
