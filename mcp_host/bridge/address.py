"""Where the bridge listens, and by which names it may be called there."""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Final

from gateway.domain.errors import GatewayError

LOOPBACK: Final = "127.0.0.1"

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen; port 0 is any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `HOST:PORT`, `[IPv6]:PORT`, or a port alone, which is one of loopback.

        Raises:
            ValueError: It is none of these.
        """
        host, _, port = text.rpartition(":")
        number = int(port) if port.isascii() and port.isdecimal() else -1
        if not 0 <= number <= 65_535 or (":" in host and not host.startswith("[")):
            raise ValueError(f"not HOST:PORT: {text}")
        return cls(host=host.strip("[]") or LOOPBACK, port=number)

    def is_ours(self, name: str) -> bool:
        """Say whether somebody who meant this server may call it by that name."""
        folded = name.casefold()
        if folded in _LOOPBACK_NAMES or folded == self.host.casefold():
            return True
        if self.host not in _EVERYWHERE:
            return False
        # Names can be rebound to us, addresses cannot.
        return folded == socket.gethostname().casefold() or _is_address(folded)


class CannotListen(GatewayError):
    """The address is taken, or none of this machine."""

    def __init__(self, address: Address, why: str) -> None:
        super().__init__(f"cannot listen on {address.host}:{address.port}: {why}")

    @property
    def public_message(self) -> str:
        """Return the sentence."""
        return str(self)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
