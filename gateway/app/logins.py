"""Signing in to servers from a shell: the login itself, that it is worth something, and its end."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gateway.app.servers import Tested, open_alone
from gateway.domain.errors import ToolHostError

if TYPE_CHECKING:
    from gateway.app.servers import Entry
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.ports.signing_in import Person
    from mcp_host.oauth.config import Flow
    from mcp_host.server_config import ServerConfig

SIGNED_IN: Final = "signed in"
EXPIRED: Final = "expired"
NEEDS_LOGIN: Final = "needs login"
BY_ITSELF: Final = "signs in by itself"

_REMEDY: Final = (
    "the server may want a client of your own: register one there and set oauth.client_id and "
    "oauth.client_secret"
)


def wants_sign_in(config: "ServerConfig") -> bool:
    """Tell whether a server is one that people sign in to."""
    from mcp_host.oauth.config import Auth

    return config.auth is Auth.OAUTH


def sign_in_state(home: "Home", entry: "Entry") -> str | None:
    """Return how a server's sign-in stands, as its token file says; None when it wants none.

    One that renews itself is signed in as long as nobody has refused it.
    """
    from gateway.runtime.clock import SystemClock
    from mcp_host.oauth.config import Flow
    from mcp_host.oauth.tokens import BadTokenFile, TokenStore

    if entry.config is None or not wants_sign_in(entry.config):
        return None
    if entry.config.oauth.flow is Flow.CLIENT_CREDENTIALS:
        return BY_ITSELF
    try:
        tokens = TokenStore(home.mcp_tokens).read(entry.name)
    except BadTokenFile:
        return NEEDS_LOGIN
    if tokens is None or tokens.url not in {None, entry.config.url}:
        return NEEDS_LOGIN
    if tokens.refresh_token is not None or tokens.lasts_at(SystemClock().now().timestamp()):
        return SIGNED_IN
    return EXPIRED if tokens.access_token else NEEDS_LOGIN


async def log_in(
    home: "Home",
    loaded: "Loaded",
    entry: "Entry",
    person: "Person",
    *,
    flow: "Flow | None",
    environ: Mapping[str, str],
) -> Tested:
    """Sign a person in to one server, and connect to it with what that gave.

    Raises:
        ToolHostError: There is no new sign-in, or it is good for nothing; the text says which.
    """
    from gateway.runtime.clock import SystemClock
    from mcp_host.oauth.login import sign_in
    from mcp_host.oauth.tokens import TokenStore

    config = entry.config
    if config is None:
        raise ToolHostError(entry.name, entry.problem)
    if not wants_sign_in(config):
        raise ToolHostError(entry.name, "nobody signs in to it: its entry has no auth: oauth")
    home.create()
    store = TokenStore(home.mcp_tokens)
    try:
        await sign_in(
            entry.name,
            config,
            store=store,
            person=person,
            environ=environ,
            clock=SystemClock(),
            document_url=loaded.config.mcp.client_metadata_url,
            flow=flow,
        )
    except ToolHostError as error:
        kept = sign_in_state(home, entry) == SIGNED_IN
        stored = "no new token stored, the one before is kept" if kept else "no token stored"
        raise ToolHostError(entry.name, f"{stored}: {error.problem}") from error
    async with open_alone(home, loaded, entry.name, config) as host:
        try:
            agreed = await host.try_server(entry.name)
            await host.try_call(entry.name)
        except ToolHostError as error:
            problem = f"a token is stored, and a call with it does not work: {error.problem}"
            raise ToolHostError(entry.name, f"{problem}; {_REMEDY}") from error
        return Tested(
            agreed=agreed,
            tools=tuple(host.tools()),
            warnings=(*entry.warnings, *host.servers()[0].notes),
        )


async def log_out(home: "Home", name: str) -> bool:
    """Remove a server's tokens; returns whether there were any.

    Raises:
        ToolHostError: They cannot be removed.
    """
    from mcp_host.config import SERVER_NAME
    from mcp_host.oauth.tokens import BadTokenFile, TokenStore

    store = TokenStore(home.mcp_tokens)
    if not SERVER_NAME.fullmatch(name) or store.stamp(name) is None:
        # Nothing else is the name of a file of tokens.
        return False
    try:
        async with store.locked(name):
            return store.remove(name)
    except BadTokenFile as error:
        raise ToolHostError(name, str(error)) from None


async def check_client_document(url: str, environ: Mapping[str, str]) -> None:
    """Look at what is hosted as our client's document.

    Raises:
        BadDocument: A rule is broken.
        ToolHostError: It may not be reached, or cannot be.
    """
    from mcp_host.oauth.cimd import check_document
    from mcp_host.oauth.fetch import Fetcher
    from mcp_host.server_config import ServerConfig

    config = ServerConfig.model_validate({"url": url})
    async with Fetcher("client-document", config, environ) as fetcher:
        await check_document(fetcher, url)
