"""Which addresses a reply may link to, and how their real host is shown. Pure."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_WEB: Final = frozenset({"http", "https"})
_BARE: Final = re.compile(r"[^\s/@:]+(?:\.[^\s/@:]+)+")


def allowed(url: str) -> bool:
    """Whether it may be linked: other programs' addresses (`tg://`) stay words."""
    parts = _split(url)
    if parts is None:
        return False
    return parts.scheme == "mailto" or (parts.scheme in _WEB and bool(parts.hostname))


def told(url: str, label: str) -> str:
    """Return what must stand behind a link so that its target is seen, "" when the label says it."""
    parts = _split(url)
    if parts is None or not allowed(url):
        return ""
    if parts.scheme == "mailto":
        address = url.partition(":")[2].partition("?")[0]
        return "" if address.casefold() in label.casefold() else f" ({address})"
    if parts.username is None and _host_in(label) == parts.hostname:
        return ""
    return f" ({_readable(parts.hostname or '')})"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        # Reading it may fail on its own.
        _ = parts.port
    except ValueError:
        return None
    return parts


def _host_in(label: str) -> str | None:
    """Return the host a label names, when it is nothing but an address."""
    text = label.strip()
    if "://" in text:
        parts = _split(text)
        return None if parts is None or re.search(r"\s", text) else parts.hostname
    bare = text.partition("/")[0]
    return bare.lower() if _BARE.fullmatch(bare) else None


def _readable(host: str) -> str:
    """Return a host in ASCII, so that letters that look alike are told apart."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host.encode("ascii", "backslashreplace").decode()
