"""Signs in by a page in a browser: the authorization code with PKCE (RFC 6749, 7636, 8707, 9207)."""

import asyncio
import secrets
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from gateway.domain.errors import ServerUnavailable, ToolHostError
from gateway.ports.signing_in import CANCEL, Person, SignInLink
from mcp_host.oauth.callback import Listener, NoPort, listening
from mcp_host.oauth.cimd import BadDocument, check_document, redirect_uris
from mcp_host.oauth.config import FIGMA_ISSUER
from mcp_host.oauth.discovery import AuthorizationServer
from mcp_host.oauth.exchange import GrantRefused, TokenEndpoint
from mcp_host.oauth.fetch import Fetcher
from mcp_host.oauth.grants import Signed, Wanted
from mcp_host.oauth.identity import Identity, document_client, identity_for, own_client, register
from mcp_host.oauth.pages import page_to_open
from mcp_host.oauth.places import choose_ports, redirect_path, redirect_uri
from mcp_host.oauth.redirect import (
    Expected,
    Granted,
    LoginRefused,
    NotOurs,
    WrongState,
    pasted_query,
    read_redirect,
)
from mcp_host.oauth.scopes import OFFLINE
from mcp_host.oauth.tokens import Client, TokenStore
from mcp_host.transports.failures import shown_url

_S256: Final = "S256"


def expected_from(server: AuthorizationServer) -> Expected:
    """Return what the redirect of a new sign-in must have, with a state of its own.

    One issuer says that it sends `iss` and never does; no other may leave it out.
    """
    return Expected(
        state=secrets.token_urlsafe(32),
        issuer=server.issuer,
        iss_advertised=server.sends_iss is True,
        iss_may_lack=server.issuer == FIGMA_ISSUER,
    )


class BrowserFlow:
    """One sign-in."""

    def __init__(
        self,
        wanted: Wanted,
        endpoint: TokenEndpoint,
        fetcher: Fetcher,
        person: Person,
        store: TokenStore,
    ) -> None:
        self._wanted = wanted
        self._oauth = wanted.config.oauth
        self._endpoint = endpoint
        self._fetcher = fetcher
        self._person = person
        self._store = store

    async def run(self) -> Signed:
        """Return what was granted.

        Raises:
            ToolHostError: It was refused, given up, or nobody came back in time.
            ServerUnavailable: Something could not be reached.
        """
        name, server = self._wanted.server, self._wanted.found.server
        if _S256 not in (server.code_challenge_methods_supported or ()):
            issuer = shown_url(server.issuer)
            raise ToolHostError(
                name, f"{issuer} does not say that it checks PKCE with S256: not signed in"
            )
        identity = self._identity(refused=False)
        try:
            return await self._attempt(identity)
        except GrantRefused as error:
            if error.code != "invalid_client" or identity is not Identity.DOCUMENT:
                raise
        self._store.refuse_document(name)
        self._person.tell(
            "it does not take the document that says who we are, so we register there instead: "
            "please open the new link"
        )
        return await self._attempt(self._identity(refused=True))

    def _identity(self, *, refused: bool) -> Identity:
        return identity_for(
            self._oauth,
            self._wanted.found.server,
            document_url=self._wanted.document_url,
            refused=refused,
        )

    async def _attempt(self, identity: Identity) -> Signed:
        try:
            return await self._by_redirect(identity)
        except NoPort as error:
            raise ToolHostError(self._wanted.server, str(error)) from None

    async def _by_redirect(self, identity: Identity) -> Signed:
        from mcp.client.auth.oauth2 import PKCEParameters

        server = self._wanted.found.server
        if identity is Identity.DOCUMENT:
            await self._check_document()
        proof = PKCEParameters.generate()
        expected = expected_from(server)
        before = self._wanted.before.client if self._wanted.before is not None else None
        ports = choose_ports(self._oauth, cimd=identity is Identity.DOCUMENT, stored=before)
        waiting = listening(
            ports,
            redirect_path(self._oauth),
            expected,
            redirect_host=self._oauth.redirect_host,
            proxied_uri=self._oauth.redirect_uri,
        )
        async with waiting as listener:
            back = redirect_uri(self._oauth, listener.port)
            if identity is Identity.DOCUMENT and back not in redirect_uris():
                # The document does not name the only port that could be had.
                identity = Identity.REGISTERED
            client = await self._client(identity, back)
            url = self._page(client, back, expected.state, proof.code_challenge)
            await self._person.show_link(SignInLink(url=url, port=listener.port, redirect_uri=back))
            granted = await self._answer(identity, listener, expected)
        if granted.warning:
            self._person.tell(granted.warning)
        grant = await self._endpoint.redeem(
            client, code=granted.code, verifier=proof.code_verifier, redirect_uri=back
        )
        return Signed(client=client, grant=grant)

    async def _check_document(self) -> None:
        url = self._wanted.document_url
        try:
            await check_document(self._fetcher, url)
        except BadDocument as error:
            problem = f"the document {url} {error}; cimd: false does without it"
            raise ToolHostError(self._wanted.server, problem) from None
        except ServerUnavailable as error:
            # It is the authorization server that has to reach it.
            self._person.tell(f"the document {url} could not be looked at ({error.problem})")

    async def _client(self, identity: Identity, back: str) -> Client:
        match identity:
            case Identity.OWN:
                return own_client(self._oauth)
            case Identity.DOCUMENT:
                return document_client(self._wanted.document_url, back)
            case Identity.REGISTERED:
                return self._wanted.known_client(back) or await register(
                    self._wanted.server,
                    self._wanted.config.url,
                    self._oauth,
                    self._wanted.found,
                    self._fetcher,
                    redirect_uri=back,
                    scope=self._wanted.scope,
                )

    def _page(self, client: Client, back: str, state: str, challenge: str) -> str:
        endpoint = self._wanted.found.server.authorization_endpoint
        if endpoint is None:
            raise ToolHostError(
                self._wanted.server, "it offers no sign-in by browser: try --flow device"
            )
        scope = self._wanted.scope
        asked = {**self._oauth.authorize_params}
        if scope:
            asked["scope"] = scope
        if scope and OFFLINE in scope.split():
            # OpenID Connect gives offline access for an explicit yes alone.
            asked.setdefault("prompt", "consent")
        asked |= {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": back,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": _S256,
            "resource": self._wanted.found.resource,
        }
        parts = urlsplit(page_to_open(self._wanted.server, endpoint))
        query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *asked.items()])
        return urlunsplit(parts._replace(query=query, fragment=""))

    async def _answer(self, identity: Identity, listener: Listener, expected: Expected) -> Granted:
        """Return what came first: the browser by itself, or what the person pasted."""
        server = self._wanted.server
        ways = {
            asyncio.create_task(listener.answer(), name=f"callback:{server}"),
            asyncio.create_task(self._pasted(expected), name=f"paste:{server}"),
        }
        try:
            async with asyncio.timeout(self._oauth.timeout):
                done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        except TimeoutError:
            raise ToolHostError(server, self._late(identity)) from None
        except WrongState:
            problem = "the browser came back from another sign-in (its state differs)"
            raise ToolHostError(server, problem) from None
        except LoginRefused as error:
            raise ToolHostError(server, str(error)) from None
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)

    async def _pasted(self, expected: Expected) -> Granted:
        while True:
            line = (await self._person.pasted()).strip()
            if line.lower() == CANCEL:
                raise ToolHostError(self._wanted.server, "the sign-in was cancelled")
            if not line:
                continue
            try:
                return read_redirect(expected, pasted_query(line))
            except NotOurs:
                self._person.tell(
                    "that is no redirect of a sign-in: paste the whole URL, or cancel"
                )
            except WrongState:
                self._person.tell(
                    "that belongs to another sign-in (its state differs): "
                    "paste the redirect of the link above, or cancel"
                )

    def _late(self, identity: Identity) -> str:
        late = f"nobody came back from the sign-in page within {self._oauth.timeout:g} s"
        if identity is not Identity.DOCUMENT:
            return late
        return (
            f"{late}; if the page showed an error, the server may not take the document "
            f"{self._wanted.document_url}: try cimd: false"
        )
