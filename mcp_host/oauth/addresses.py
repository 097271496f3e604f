"""Where the requests of a sign-in may go: never to what a stranger's document only wants reached.

A server's metadata names hosts that we then ask. Each is resolved once, judged, and connected to by
the address that was judged.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from mcp_host.oauth.config import is_loopback

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|\d+)", re.IGNORECASE)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_SHARED: Final = ipaddress.ip_network("100.64.0.0/10")
_METADATA: Final = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "192.0.0.192")))
"""Where clouds hand out credentials; the other such addresses are link-local or shared."""


class Forbidden(Exception):
    """A URL that a sign-in must not reach; the text says why, and shows host and rule alone."""


class Zone(IntEnum):
    """How far from everybody an address is."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    NOWHERE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL that may be reached, and by which addresses; none when a proxy resolves the name.

    `own`: its host is the MCP server's.
    """

    url: str
    host: str
    own: bool
    addresses: tuple[str, ...]


class Reach:
    """What one server's sign-in may reach: the world, and the zone the server itself is in.

    The user configured that server, so its own host is theirs to choose; a name in its documents
    is not. Plain HTTP is for this machine alone, and only for a server that is on it.
    """

    def __init__(self, server_url: str, resolve: Resolve | None = None) -> None:
        self._server = _split(server_url)
        self._host = _ascii(self._server.hostname or "")
        self._resolve = resolve or resolved
        self._zone: Zone | None = None

    async def target(self, url: str, *, proxied: bool = False) -> Target:
        """Return where to connect for a URL.

        Raises:
            Forbidden: A rule forbids it.
            OSError: Its name does not resolve.
        """
        parts = _split(url)
        host = _ascii(parts.hostname or "")
        if parts.username is not None or parts.password is not None:
            raise Forbidden(f"{host} is named with a user")
        own = self._is_own(host)
        local = is_loopback(self._host)
        if parts.scheme == "http":
            if not (local and is_loopback(host)):
                raise Forbidden(f"{host} is not asked over plain http")
        elif parts.scheme != "https":
            raise Forbidden(f"{parts.scheme}: is no https URL")
        literal = _literal(host)
        if literal is None and proxied:
            return Target(url=url, host=host, own=own, addresses=())
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        found = (literal,) if literal is not None else await self._resolve(host, port)
        if not own:
            allowed = {Zone.PUBLIC, await self._own_zone()}
            for address in found:
                if _zone(address) not in allowed:
                    raise Forbidden(f"{host} is at an address that is not public")
        addresses = tuple(str(address) for address in found)
        return Target(url=url, host=host, own=own, addresses=addresses)

    def _is_own(self, host: str) -> bool:
        return host.lower().rstrip(".") == self._host.lower().rstrip(".")

    async def _own_zone(self) -> Zone:
        """Return the zone the server is in; link-local and the like open no other address."""
        if self._zone is None:
            literal = _literal(self._host)
            port = self._server.port or DEFAULT_PORTS.get(self._server.scheme, 443)
            try:
                found = (literal,) if literal is not None else await self._resolve(self._host, port)
            except OSError:
                found = ()
            zones = {_zone(address) for address in found}
            zone = zones.pop() if len(zones) == 1 else Zone.PUBLIC
            self._zone = Zone.PUBLIC if zone is Zone.NOWHERE else zone
        return self._zone


async def resolved(host: str, port: int) -> Sequence[Address]:
    """Return the addresses of a name, as the system resolves it.

    Raises:
        OSError: There are none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found]
    return tuple(dict.fromkeys(addresses))


def _ascii(host: str) -> str:
    """Return a host as it is resolved: other alphabets have digits and dots of their own."""
    try:
        return host if ":" in host else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise Forbidden("a URL whose host is no name") from None


def _literal(host: str) -> Address | None:
    """Return the address that a host is written as, None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    # What the resolver would take for an address, and nobody writes so without a reason.
    if all(_NUMBER.fullmatch(part) for part in host.rstrip(".").split(".")):
        raise Forbidden(f"{host} is a number and no name")
    return None


def _zone(address: Address) -> Zone:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return Zone.NOWHERE
        if any(_zone(inner) is not Zone.PUBLIC for inner in _embedded(address)):
            return Zone.NOWHERE
    if address.is_loopback:
        return Zone.LOOPBACK
    odd = address.is_link_local or address.is_multicast or address.is_unspecified
    if odd or address.is_reserved or address in _SHARED or address in _METADATA:
        return Zone.NOWHERE
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return Zone.PRIVATE
    if address.is_global:
        return Zone.PUBLIC
    return Zone.PRIVATE if address.is_private else Zone.NOWHERE


def _embedded(address: ipaddress.IPv6Address) -> Iterable[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address leads to."""
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    if not usable:
        raise Forbidden("a URL without a host")
    return parts
