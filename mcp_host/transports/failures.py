"""What a failed exchange over the network means: whether the request can have run, in words.

Raises nothing itself, and shows no URL beyond its origin and path: the rest may be a secret.
"""

import os
import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

import httpx2

from gateway.domain.errors import ServerUnavailable
from mcp_host.errors import leaf, one_line, reason_of

_NOTHING_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)
_UNDECIDED: Final = frozenset({408, 429})


def is_undecided(status: int) -> bool:
    """Tell whether an HTTP status is no word on what was asked: it may be asked again."""
    return status >= 500 or status in _UNDECIDED


def unavailable(server: str, url: str, error: httpx2.TransportError) -> ServerUnavailable:
    """Return the failure of a request as callers see it."""
    if isinstance(error, _NOTHING_SENT):
        problem = f"cannot reach {shown_url(url)}: {_cause(error)}"
        return ServerUnavailable(server, problem, sent=False)
    return ServerUnavailable(server, f"the answer broke off: {_cause(error)}", sent=True)


def shown_url(url: str) -> str:
    """Return the URL without what may be a secret: user, query and fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return one_line(f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}")


def _cause(error: BaseException) -> str:
    """Return what the system said: the outer layers say only that they failed."""
    inner = error
    while (below := inner.__cause__ or inner.__context__) is not None:
        inner = leaf(below)
    match inner:
        case ssl.SSLCertVerificationError():
            return one_line(f"its certificate is not accepted ({inner.verify_message})")
        case ssl.SSLError(reason=str(reason)):
            return one_line(f"TLS failed ({reason.lower().replace('_', ' ')})")
        case socket.gaierror(strerror=str(said)):
            return one_line(said.lower())
        case OSError(errno=int(number)) if number > 0:
            # The event loop puts addresses in its own text; the system's is the plain one.
            return os.strerror(number).lower()
        case _:
            pass
    said = reason_of(error)
    return said if said != type(error).__name__ else reason_of(inner)
