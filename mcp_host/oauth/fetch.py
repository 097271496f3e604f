"""The requests of a sign-in: bounded in size and time, to judged addresses, with nobody's credentials.

Not the client that talks to the MCP server: none of its headers or certificates goes along.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast
from urllib.parse import urljoin, urlsplit

import httpx2
from pydantic_core import from_json

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.oauth.addresses import DEFAULT_PORTS, Forbidden, Reach, Resolve, Target
from mcp_host.server_config import ServerConfig
from mcp_host.transports.failures import is_undecided, shown_url, unavailable
from mcp_host.transports.proxy import BadProxy, proxy_for
from mcp_host.transports.tls import trusting

METADATA_BYTES: Final = 64 << 10
METADATA_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 3
USER_AGENT: Final = "hermes-gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer, whole; `url` is where it came from, redirects followed."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def undecided(self) -> bool:
        """Tell whether this is no word on what was asked."""
        return is_undecided(self.status)

    def json_object(self) -> Mapping[str, Any] | None:
        """Return the JSON object that the body is, None when it is none."""
        try:
            read: object = from_json(self.body)
        except ValueError:
            return None
        return cast("dict[str, Any]", read) if isinstance(read, dict) else None


class Fetcher:
    """Asks the authorization server of one MCP server, and that one for its metadata."""

    def __init__(
        self,
        server: str,
        config: ServerConfig,
        environ: Mapping[str, str],
        *,
        resolve: Resolve | None = None,
    ) -> None:
        self._server = server
        self._reach = Reach(config.url, resolve)
        self._environ = environ
        self._config = config
        self._trusted: dict[bool, ssl.SSLContext] = {}
        self._clients: dict[tuple[str | None, str], httpx2.AsyncClient] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Fetched:
        """Return a document; redirects are followed within its origin, three at most.

        Raises:
            ToolHostError: It may not be reached, or is too large.
            ServerUnavailable: It could not be reached now.
        """
        try:
            async with asyncio.timeout(METADATA_SECONDS):
                return await self._following(url, dict(headers or {}))
        except TimeoutError:
            problem = f"{shown_url(url)} did not answer within {METADATA_SECONDS:g} s"
            raise ServerUnavailable(self._server, problem, sent=False) from None

    async def look(self, url: str) -> Fetched:
        """Return a document as `get` does, and never follow a redirect."""
        try:
            async with asyncio.timeout(METADATA_SECONDS):
                return await self._exchange("GET", url, {})
        except TimeoutError:
            problem = f"{shown_url(url)} did not answer within {METADATA_SECONDS:g} s"
            raise ServerUnavailable(self._server, problem, sent=False) from None

    async def post(
        self,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Send a form or JSON and return the answer, whatever it is; follows nothing.

        Raises:
            ToolHostError: It may not be reached, or its answer is too large.
            ServerUnavailable: It could not be reached, or did not answer.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._exchange("POST", url, dict(headers or {}), form=form, json=json)
        except TimeoutError:
            problem = f"{shown_url(url)} did not answer within {ANSWER_SECONDS:g} s"
            raise ServerUnavailable(self._server, problem, sent=True) from None

    async def _following(self, url: str, headers: dict[str, str]) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            fetched = await self._exchange("GET", url, headers)
            location = fetched.headers.get("location")
            if not 300 <= fetched.status < 400 or location is None:
                return fetched
            elsewhere = _within_origin(url, location)
            if elsewhere is None:
                problem = f"{shown_url(url)} redirects to another origin, which is not followed"
                raise ToolHostError(self._server, problem)
            url = elsewhere
        raise ToolHostError(self._server, f"{shown_url(url)} redirects too often")

    async def _exchange(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        *,
        form: Mapping[str, str] | None = None,
        json: object = None,
    ) -> Fetched:
        try:
            proxy = proxy_for(url, self._environ)
            target = await self._reach.target(url, proxied=proxy is not None)
        except BadProxy as error:
            raise ToolHostError(self._server, str(error)) from None
        except Forbidden as error:
            raise self._astray(str(error)) from None
        except ValueError:
            raise self._astray("a URL that is none") from None
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            problem = f"cannot reach {shown_url(url)}: {why}"
            raise ServerUnavailable(self._server, problem, sent=False) from None
        client = self._client(proxy, target)
        sent = {"user-agent": USER_AGENT, "accept": "application/json", **headers}
        problem = f"cannot reach {shown_url(url)}: it has no address"
        failed = ServerUnavailable(self._server, problem, sent=False)
        for at in target.addresses or (None,):
            try:
                request = _request(client, method, target, at, sent, form=form, json=json)
                return await self._sent(client, request, url)
            except httpx2.InvalidURL:
                raise self._astray("a URL that is none") from None
            except httpx2.DecodingError:
                problem = f"{shown_url(url)} answers with something that does not unpack"
                raise ToolHostError(self._server, problem) from None
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                # The name may have another address.
                failed = unavailable(self._server, url, error)
            except httpx2.TransportError as error:
                raise unavailable(self._server, url, error) from None
        raise failed

    async def _sent(self, client: httpx2.AsyncClient, request: httpx2.Request, url: str) -> Fetched:
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > METADATA_BYTES:
                    problem = f"{shown_url(url)} answers with more than {METADATA_BYTES >> 10} KB"
                    raise ToolHostError(self._server, problem)
        finally:
            await response.aclose()
        return Fetched(
            url=url,
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body),
        )

    def _astray(self, why: str) -> ToolHostError:
        return ToolHostError(self._server, f"its sign-in leads where none may: {why}")

    def _client(self, proxy: str | None, target: Target) -> httpx2.AsyncClient:
        # One a host: a connection to the same address that showed the certificate of another name
        # would be taken again.
        kind = (proxy, target.host)
        if kind not in self._clients:
            self._clients[kind] = httpx2.AsyncClient(
                verify=self._trusting(own_host=target.own),
                proxy=proxy,
                trust_env=False,
                timeout=httpx2.Timeout(ANSWER_SECONDS, connect=METADATA_SECONDS),
                follow_redirects=False,
            )
        return self._clients[kind]

    def _trusting(self, *, own_host: bool) -> ssl.SSLContext:
        if own_host not in self._trusted:
            context = trusting(self._server, self._config, own_host=own_host)
            self._trusted[own_host] = context
        return self._trusted[own_host]


def _request(
    client: httpx2.AsyncClient,
    method: str,
    target: Target,
    at: str | None,
    headers: Mapping[str, str],
    *,
    form: Mapping[str, str] | None,
    json: object,
) -> httpx2.Request:
    """Build a request that connects to one address, and asks for the host by its name."""
    url = httpx2.URL(target.url)
    sent = dict(headers)
    extensions: dict[str, str] = {}
    if at is not None and at != url.host:
        sent["host"] = url.netloc.decode("ascii")
        extensions["sni_hostname"] = target.host
        url = url.copy_with(host=at)
    if json is not None:
        return client.build_request(method, url, headers=sent, json=json, extensions=extensions)
    data = None if form is None else dict(form)
    return client.build_request(method, url, headers=sent, data=data, extensions=extensions)


def _within_origin(url: str, location: str) -> str | None:
    """Return where a redirect leads, None when that is another origin, or none at all."""
    try:
        elsewhere = urljoin(url, location)
        return elsewhere if _origin(elsewhere) == _origin(url) else None
    except ValueError:
        return None


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)
