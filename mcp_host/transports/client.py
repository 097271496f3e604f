"""The HTTP client of one server: its headers, certificates and proxy, and nobody else's."""

import os

import httpx2

from gateway.domain.errors import ToolHostError
from mcp_host.errors import reason_of
from mcp_host.oauth.bearer import BearerTransport, TokenSource
from mcp_host.server_config import ServerConfig
from mcp_host.transports.proxy import BadProxy, proxy_for
from mcp_host.transports.tls import ssl_context


def make_client(
    server: str, config: ServerConfig, tokens: TokenSource | None = None
) -> httpx2.AsyncClient:
    """Return a client for the server alone, which sends its token; the caller closes it.

    A request waits as long as its caller does: only connecting has a bound of its own.

    Raises:
        ToolHostError: Its certificates, its headers or its proxy cannot be used.
    """
    if config.unset:
        names = ", ".join(dict.fromkeys(config.unset))
        raise ToolHostError(server, f"its address or a header needs a variable not set: {names}")
    verify = ssl_context(server, config)
    try:
        transport: httpx2.AsyncBaseTransport = httpx2.AsyncHTTPTransport(
            verify=verify,
            proxy=proxy_for(config.url, os.environ),
            # What the environment says is decided above, for this server alone.
            trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=16),
        )
        if tokens is not None:
            transport = BearerTransport(transport, tokens)
        return httpx2.AsyncClient(
            transport=transport,
            headers=_headers(config),
            trust_env=False,
            timeout=httpx2.Timeout(None, connect=config.connect_timeout),
            follow_redirects=False,
        )
    except BadProxy as error:
        raise ToolHostError(server, str(error)) from None
    except ImportError:
        missing = "a SOCKS proxy needs an extra: pip install 'hermes-gateway[socks]'"
        raise ToolHostError(server, missing) from None
    except (ValueError, httpx2.InvalidURL) as error:
        raise ToolHostError(server, f"its URL cannot be used: {reason_of(error)}") from None


def _headers(config: ServerConfig) -> list[tuple[bytes, bytes]]:
    sent = {"user-agent": "hermes-gateway"}
    for name, value in config.sent_headers.items():
        sent[name.lower()] = value
    return [(name.encode(), value.encode()) for name, value in sent.items()]
