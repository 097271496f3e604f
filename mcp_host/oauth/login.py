"""Signs a person in to one server: one attempt, one listener and one state until it has ended.

The only way to tokens that needs somebody; nothing that runs in the background imports it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gateway.domain.errors import ToolHostError
from gateway.ports import Clock
from gateway.ports.signing_in import Person
from mcp_host.oauth.browser_flow import BrowserFlow
from mcp_host.oauth.challenging import challenge_from
from mcp_host.oauth.config import Flow
from mcp_host.oauth.device_flow import DeviceFlow
from mcp_host.oauth.discovery import Discovery
from mcp_host.oauth.exchange import TokenEndpoint
from mcp_host.oauth.fetch import Fetcher
from mcp_host.oauth.grants import Signed, Wanted
from mcp_host.oauth.keeper import TokenKeeper
from mcp_host.oauth.scopes import scopes_to_ask
from mcp_host.oauth.tokens import BadTokenFile, Tokens, TokenStore, new_login
from mcp_host.server_config import ServerConfig

ENDS_WITHOUT_RENEWAL: Final = (
    "it gave no refresh token: this sign-in ends with its token; "
    "some servers give one for oauth.authorize_params, such as access_type: offline"
)


async def sign_in(
    server: str,
    config: ServerConfig,
    *,
    store: TokenStore,
    person: Person,
    environ: Mapping[str, str],
    clock: Clock,
    document_url: str = "",
    flow: Flow | None = None,
) -> Tokens:
    """Return the tokens of a new login, which are stored by then.

    `document_url` is who we are where that can be read (CIMD); `flow` goes before the entry's.

    Raises:
        ToolHostError: It failed; what was stored before is as it was.
        ServerUnavailable: Something could not be reached now.
    """
    try:
        async with store.at_once(server, "login") as free:
            if not free:
                raise ToolHostError(server, "another process is signing in to it at this moment")
            chosen = flow or config.oauth.flow or Flow.BROWSER
            if chosen is Flow.CLIENT_CREDENTIALS:
                return await _without_person(server, config, store, environ, clock)
            store.offer_document(server)
            before = _stored(server, store, person)
            async with Fetcher(server, config, environ) as fetcher:
                challenge = await challenge_from(server, config)
                found = await Discovery(server, config.url, fetcher).find(challenge)
                wanted = Wanted(
                    server=server,
                    config=config,
                    found=found,
                    scope=scopes_to_ask(config.oauth.scope, found, challenge, before),
                    before=before,
                    document_url=config.oauth.client_metadata_url or document_url,
                )
                endpoint = TokenEndpoint(server, found, config.oauth, fetcher)
                signed = await (
                    DeviceFlow(wanted, endpoint, fetcher, person, clock).run()
                    if chosen is Flow.DEVICE
                    else BrowserFlow(wanted, endpoint, fetcher, person, store).run()
                )
            return await _stored_now(wanted, signed, store, person, clock)
    except BadTokenFile as error:
        raise ToolHostError(server, str(error)) from None


async def _stored_now(
    wanted: Wanted, signed: Signed, store: TokenStore, person: Person, clock: Clock
) -> Tokens:
    grant = signed.grant
    now = clock.now().timestamp()
    tokens = Tokens(
        access_token=grant.access_token,
        refresh_token=grant.refresh_token,
        expires_at=None if grant.lifetime is None else now + grant.lifetime,
        lifetime=grant.lifetime,
        scope=grant.scope or wanted.scope,
        url=wanted.config.url,
        issuer=wanted.found.server.issuer,
        # A client of the configuration stays there alone, with its secret.
        client=None if wanted.config.oauth.client_id else signed.client,
        login=new_login(),
    )
    async with store.locked(wanted.server):
        store.write(wanted.server, tokens)
    if tokens.refresh_token is None:
        person.tell(ENDS_WITHOUT_RENEWAL)
    return tokens


async def _without_person(
    server: str,
    config: ServerConfig,
    store: TokenStore,
    environ: Mapping[str, str],
    clock: Clock,
) -> Tokens:
    """Return what the client itself is given, anew."""
    async with store.locked(server):
        tokens = store.read(server)
        if tokens is not None:
            store.write(server, replace(tokens.without_tokens(), login=new_login()))
    keeper = TokenKeeper(server, config, store=store, environ=environ, clock=clock)
    await keeper.token()
    tokens = store.read(server)
    if tokens is None:
        raise ToolHostError(server, "its token file went away")
    return tokens


def _stored(server: str, store: TokenStore, person: Person) -> Tokens | None:
    try:
        return store.read(server)
    except BadTokenFile as error:
        person.tell(f"{error}; a sign-in replaces it")
        return None
