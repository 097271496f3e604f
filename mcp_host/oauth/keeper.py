"""Keeps one server's sign-in alive: hands out its token, and renews it once for all who need it.

Nothing here can reach a person. Whatever needs one ends in `NeedsLogin`. The file is looked at
before each use, so that a login or a renewal of another process is taken over at once.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gateway.domain.errors import NeedsLogin, NeedsScope, ServerUnavailable, ToolHostError
from gateway.ports import Clock
from mcp_host.oauth.config import Flow
from mcp_host.oauth.credentials import granted_to_client
from mcp_host.oauth.discovery import Challenge, Discovery, Found
from mcp_host.oauth.exchange import Grant, GrantRefused, TokenEndpoint
from mcp_host.oauth.fetch import Fetcher
from mcp_host.oauth.identity import own_client
from mcp_host.oauth.scopes import joined_scopes
from mcp_host.oauth.tokens import BadTokenFile, Client, Tokens, TokenStore, new_login
from mcp_host.server_config import ServerConfig

CLOSE_SECONDS: Final = 5.0
"""How long a renewal under way is waited for at the end: its answer may hold the only good token."""

REMEMBERED: Final = 4
"""How many tokens are known as sent: a call may last over some renewals."""

_EXPIRED: Final = "the sign-in has ended"
_MISSING: Final = "nobody is signed in"


class TokenKeeper:
    """The sign-in of one server entry."""

    def __init__(
        self,
        server: str,
        config: ServerConfig,
        *,
        store: TokenStore,
        environ: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._server = server
        self._config = config
        self._store = store
        self._environ = environ
        self._clock = clock
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: Tokens | None = None
        self._renewing: asyncio.Task[str] | None = None
        self._sent: deque[str] = deque(maxlen=REMEMBERED)

    @property
    def sent(self) -> frozenset[str]:
        """The access tokens handed out lately: that of now, and some from before renewals."""
        return frozenset(self._sent)

    async def token(self) -> str:
        """Return a token that can be sent now.

        Raises:
            NeedsLogin: There is none, and none can be had without a person.
            ServerUnavailable: It must be renewed, and that failed for now.
        """
        return self._handed_out(await self._token())

    async def _token(self) -> str:
        tokens = self._current()
        now = self._now()
        if tokens is not None and tokens.url is not None and tokens.valid_at(now):
            return tokens.access_token
        if tokens is None and self._config.oauth.flow is not Flow.CLIENT_CREDENTIALS:
            raise NeedsLogin(self._server, self._why())
        try:
            return await self._renewed_by_one(None, None)
        except ServerUnavailable:
            if tokens is not None and tokens.url is not None and tokens.lasts_at(now):
                return tokens.access_token
            raise

    async def renewed(self, refused: str, challenge: Challenge) -> str:
        """Return another token than the one that the server has just refused; raises as `token`."""
        for _ in range(2):
            # The first may have joined a renewal that began before the refusal.
            token = await self._renewed_by_one(refused, challenge)
            if token != refused:
                return self._handed_out(token)
        raise NeedsLogin(self._server, _EXPIRED)

    def _handed_out(self, token: str) -> str:
        if token not in self._sent:
            self._sent.append(token)
        return token

    async def lacks(self, scope: str) -> NeedsScope:
        """Remember a scope that a request lacked, for the next login; returns what to raise."""
        try:
            async with self._store.locked(self._server):
                tokens = self._read()
                if tokens is not None:
                    wanted = joined_scopes(tokens.wanted_scope, scope)
                    if wanted != tokens.wanted_scope:
                        self._write(replace(tokens, wanted_scope=wanted))
        except BadTokenFile as error:
            raise ToolHostError(self._server, str(error)) from None
        return NeedsScope(self._server, scope)

    async def close(self) -> None:
        """Let a renewal under way come to its end, for a while."""
        if self._renewing is not None and not self._renewing.done():
            await asyncio.wait({self._renewing}, timeout=CLOSE_SECONDS)
            self._renewing.cancel()
            await asyncio.wait({self._renewing})

    # --- renewal --------------------------------------------------------------------

    async def _renewed_by_one(self, refused: str | None, challenge: Challenge | None) -> str:
        if self._renewing is None or self._renewing.done():
            # In a task of its own: a caller who goes away must not lose the new token for the rest.
            work = self._renew(refused, challenge)
            self._renewing = asyncio.create_task(work, name=f"renew:{self._server}")
            self._renewing.add_done_callback(_looked_at)
        return await asyncio.shield(self._renewing)

    async def _renew(self, refused: str | None, challenge: Challenge | None) -> str:
        try:
            async with (
                self._store.locked(self._server),
                Fetcher(self._server, self._config, self._environ) as fetcher,
            ):
                tokens = self._read()
                if tokens is not None and tokens.url is None:
                    tokens = await self._bind(tokens, fetcher)
                usable = tokens is not None and tokens.valid_at(self._now())
                if tokens is not None and usable and tokens.access_token != refused:
                    # Another process was faster.
                    return tokens.access_token
                return await self._exchange(tokens, refused, challenge, fetcher)
        except BadTokenFile as error:
            raise ToolHostError(self._server, str(error)) from None

    async def _bind(self, tokens: Tokens, fetcher: Fetcher) -> Tokens:
        """Tie a file that was written by hand to this server, and to who signs in to it now."""
        issuer = tokens.issuer
        if issuer is None and tokens.refresh_token is not None:
            issuer = (await self._discovery(fetcher).find()).server.issuer
        bound = replace(
            tokens, url=self._config.url, issuer=issuer, login=tokens.login or new_login()
        )
        self._write(bound)
        return bound

    async def _exchange(
        self,
        tokens: Tokens | None,
        refused: str | None,
        challenge: Challenge | None,
        fetcher: Fetcher,
    ) -> str:
        by_itself = self._config.oauth.flow is Flow.CLIENT_CREDENTIALS
        refresh_token = None if tokens is None or by_itself else tokens.refresh_token
        if refresh_token is None and not by_itself:
            raise NeedsLogin(self._server, self._why())
        found = await self._discovery(fetcher).find(challenge)
        if tokens is not None and not self._same_issuer(tokens, found):
            return self._without_renewal(tokens, refused)
        endpoint = TokenEndpoint(self._server, found, self._config.oauth, fetcher)
        if tokens is None or refresh_token is None:
            grant = await granted_to_client(
                self._server, self._config.oauth, found, endpoint, tokens
            )
            before = tokens or Tokens(url=self._config.url, login=new_login())
            return self._keep(grant, replace(before, refresh_token=None), found)
        client = self._client(tokens)
        try:
            grant = await endpoint.renew(client, refresh_token)
        except GrantRefused as error:
            raise self._refused(error, tokens, client) from None
        return self._keep(grant, tokens, found)

    def _keep(self, grant: Grant, before: Tokens, found: Found) -> str:
        """Write down what was granted, and return its token: never the other way round."""
        issuer = before.issuer or found.server.issuer
        self._write(replace(grant.put_in(before, self._now()), issuer=issuer))
        return grant.access_token

    def _refused(self, error: GrantRefused, tokens: Tokens, client: Client) -> ToolHostError:
        """Return what a refusal means; `invalid_grant` alone ends a sign-in."""
        if error.code == "invalid_grant":
            if self._read() != tokens:
                # Whoever changed it had no lock of ours; what it holds has not been refused.
                return ServerUnavailable(self._server, "its tokens have changed", sent=False)
            self._write(tokens.without_tokens())
            return NeedsLogin(self._server, _EXPIRED)
        if error.code == "invalid_client":
            if client.client_id.startswith("https://") and client.client_secret is None:
                self._store.refuse_document(self._server)
            return NeedsLogin(self._server, "who we are is not known there any more")
        return ServerUnavailable(self._server, error.problem, sent=False)

    def _without_renewal(self, tokens: Tokens, refused: str | None) -> str:
        """Let go of a refresh token that belongs to another issuer; its access token may end its time."""
        if tokens.refresh_token is not None:
            self._write(replace(tokens, refresh_token=None))
        if tokens.access_token != refused and tokens.lasts_at(self._now()):
            return tokens.access_token
        raise NeedsLogin(self._server, "somebody else signs people in to it now")

    def _same_issuer(self, tokens: Tokens, found: Found) -> bool:
        from mcp.client.auth.utils import issuers_match

        return tokens.issuer is None or issuers_match(tokens.issuer, found.server.issuer)

    def _client(self, tokens: Tokens) -> Client:
        if self._config.oauth.client_id:
            return own_client(self._config.oauth)
        if tokens.client is None:
            raise NeedsLogin(self._server, "its token file does not say who we are there")
        return tokens.client

    def _discovery(self, fetcher: Fetcher) -> Discovery:
        return Discovery(self._server, self._config.url, fetcher)

    # --- the file -------------------------------------------------------------------

    def _current(self) -> Tokens | None:
        """Return what the file holds, read anew when it has changed."""
        stamp = self._store.stamp(self._server)
        if stamp is None or stamp != self._stamp:
            try:
                self._read()
            except BadTokenFile as error:
                raise NeedsLogin(self._server, str(error)) from None
        tokens = self._tokens
        ended = tokens is not None and not (tokens.access_token or tokens.refresh_token)
        return None if ended else tokens

    def _read(self) -> Tokens | None:
        stamp = self._store.stamp(self._server)
        tokens = self._store.read(self._server)
        if tokens is not None and tokens.url not in {None, self._config.url}:
            # Signed in under this name, but elsewhere: not for the server of this entry.
            raise NeedsLogin(self._server, "its tokens are for another address")
        self._stamp, self._tokens = stamp, tokens
        return tokens

    def _write(self, tokens: Tokens) -> None:
        self._store.write(self._server, tokens)
        self._stamp, self._tokens = self._store.stamp(self._server), tokens

    def _why(self) -> str:
        # The same words at each probe: they are told to people, once.
        return _MISSING if self._tokens is None else _EXPIRED

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _looked_at(task: asyncio.Task[str]) -> None:
    # Also when nobody waits for it any more.
    if not task.cancelled():
        task.exception()
