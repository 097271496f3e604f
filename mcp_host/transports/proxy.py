"""Which proxy leads to a URL, by the environment and then by the system. Opens nothing."""

import ipaddress
import urllib.request
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

_SCHEMES: Final = frozenset({"http", "https", "socks5", "socks5h"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class BadProxy(ValueError):
    """A proxy that cannot be used; the text names where it is set and not its value."""


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy for a URL, None when it is reached directly.

    Raises:
        BadProxy: What is configured for it is no proxy.
    """
    target = urlsplit(url)
    settings = _settings(environ)
    if _bypassed(target, settings.get("no", ("", ""))[1]):
        return None
    name, value = settings.get(target.scheme.lower()) or settings.get("all") or ("", "")
    return _normal(name, value) if value else None


def _settings(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return by kind where a proxy is set, and to what."""
    found: dict[str, tuple[str, str]] = {}
    for kind in ("http", "https", "all", "no"):
        for name in (f"{kind}_proxy", f"{kind.upper()}_PROXY"):
            # An empty variable says: none of this kind.
            if name in environ:
                found[kind] = (name, environ[name].strip())
                break
    if found.keys() - {"no"}:
        return found
    system = urllib.request.getproxies()
    own = {kind: ("the system's settings", value) for kind, value in system.items()}
    return {**own, **found}


def _normal(name: str, value: str) -> str:
    text = value if "://" in value else f"http://{value}"
    if text.lower().startswith("socks://"):
        text = f"socks5{text[len('socks') :]}"
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    if not usable or any(letter.isspace() for letter in text):
        raise BadProxy(f"the proxy in {name} is no URL of a proxy")
    if parts.scheme not in _SCHEMES:
        raise BadProxy(f"the proxy in {name} is none of http, https and socks5")
    return text


def _bypassed(target: SplitResult, exceptions: str) -> bool:
    host = (target.hostname or "").rstrip(".")
    port = target.port or _DEFAULT_PORTS.get(target.scheme.lower(), 0)
    return any(_covers(entry, host, port) for entry in exceptions.replace(",", " ").split())


def _covers(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of `NO_PROXY` is about this host; one that makes no sense is not."""
    if entry == "*":
        return True
    text = entry.lower().partition("://")[2] or entry.lower()
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(text.strip("[]"), strict=False)
        except ValueError:
            pass
    name, colon, digits = text.rpartition(":")
    if colon and digits.isdigit():
        if int(digits) != port:
            return False
        text = name
    text = text.strip("[]").rstrip(".")
    if address is not None:
        return _address(text) == address
    if text.startswith(("*.", ".")):
        return host.endswith(text.removeprefix("*"))
    return bool(text) and (host == text or host.endswith(f".{text}"))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
