"""Signs a person in to one server: one attempt, one listener and one state until it has ended.

The only way to tokens that needs somebody; nothing that runs in the background imports it.
"""

from collections.abc import Mapping
from typing import Final

from gateway.domain.errors import ToolHostError
from gateway.ports import Clock
from gateway.ports.signing_in import Person
from mcp_host.oauth.browser_flow import BrowserFlow
from mcp_host.oauth.challenging import challenge_from
from mcp_host.oauth.config import Flow
from mcp_host.oauth.credentials import granted_to_client
from mcp_host.oauth.device_flow import DeviceFlow
from mcp_host.oauth.discovery import Discovery
from mcp_host.oauth.exchange import TokenEndpoint
from mcp_host.oauth.fetch import Fetcher
from mcp_host.oauth.grants import Signed, Wanted
from mcp_host.oauth.identity import own_client
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
                match chosen:
                    case Flow.CLIENT_CREDENTIALS:
                        signed = await _without_person(wanted, endpoint)
                    case Flow.DEVICE:
                        signed = await DeviceFlow(wanted, endpoint, fetcher, person, clock).run()
                    case Flow.BROWSER:
                        signed = await BrowserFlow(wanted, endpoint, fetcher, person, store).run()
            tokens = await _stored_now(wanted, signed, store, clock)
            if tokens.refresh_token is None and chosen is not Flow.CLIENT_CREDENTIALS:
                person.tell(ENDS_WITHOUT_RENEWAL)
            return tokens
    except BadTokenFile as error:
        raise ToolHostError(server, str(error)) from None


async def _stored_now(wanted: Wanted, signed: Signed, store: TokenStore, clock: Clock) -> Tokens:
    begun = Tokens(
        scope=wanted.scope,
        url=wanted.config.url,
        issuer=wanted.found.server.issuer,
        # A client of the configuration stays there alone, with its secret.
        client=None if wanted.config.oauth.client_id else signed.client,
        login=new_login(),
    )
    tokens = signed.grant.put_in(begun, clock.now().timestamp())
    async with store.locked(wanted.server):
        store.write(wanted.server, tokens)
    return tokens


async def _without_person(wanted: Wanted, endpoint: TokenEndpoint) -> Signed:
    oauth = wanted.config.oauth
    grant = await granted_to_client(wanted.server, oauth, wanted.found, endpoint, wanted.before)
    return Signed(client=own_client(oauth), grant=grant)


def _stored(server: str, store: TokenStore, person: Person) -> Tokens | None:
    try:
        return store.read(server)
    except BadTokenFile as error:
        person.tell(f"{error}; a sign-in replaces it")
        return None
