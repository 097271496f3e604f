"""Who is signed in to the servers of one host: a keeper of tokens for each that wants it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.domain.errors import ToolHostError
from gateway.ports import Clock
from gateway.ports.signing_in import Person
from mcp_host.oauth.config import Auth
from mcp_host.oauth.tokens import BadTokenFile, TokenStore
from mcp_host.server_config import ServerConfig

if TYPE_CHECKING:
    from mcp_host.oauth.keeper import TokenKeeper


class SignIns:
    """The sign-ins in a directory; without one nobody is signed in anywhere."""

    def __init__(self, directory: Path | None, clock: Clock) -> None:
        self._store = TokenStore(directory) if directory is not None else None
        self._clock = clock
        self._keepers: dict[str, TokenKeeper] = {}
        self._logins: dict[str, str] = {}
        self._stamps: dict[str, object] = {}

    def keeper(self, server: str, config: ServerConfig) -> "TokenKeeper | None":
        """Return who has the tokens of a server, None for one that wants none."""
        if self._store is None or config.auth is not Auth.OAUTH:
            return None
        from mcp_host.oauth.keeper import TokenKeeper

        keeper = TokenKeeper(
            server, config, store=self._store, environ=os.environ, clock=self._clock
        )
        self._keepers[server] = keeper
        return keeper

    async def sign_in(
        self, server: str, config: ServerConfig, person: Person, *, document_url: str
    ) -> None:
        """Sign a person in; raises as `mcp_host.oauth.login.sign_in`."""
        if self._store is None or config.auth is not Auth.OAUTH:
            raise ToolHostError(server, "nobody signs in to it: its entry has no auth: oauth")
        from mcp_host.oauth.login import sign_in

        await sign_in(
            server,
            config,
            store=self._store,
            person=person,
            environ=os.environ,
            clock=self._clock,
            document_url=document_url,
        )

    def login(self, server: str, config: ServerConfig) -> str:
        """Return the name of the login that a server is used with now, "" for none."""
        login = self._read_login(server, config)
        self._logins[server] = login
        return login

    def changed(self, server: str, config: ServerConfig) -> bool:
        """Tell whether somebody else is signed in than `login` said last."""
        if self._store is None or config.auth is not Auth.OAUTH:
            return False
        stamp = self._store.stamp(server)
        if stamp == self._stamps.get(server):
            return False
        self._stamps[server] = stamp
        return self._read_login(server, config) != self._logins.get(server, "")

    def sent(self, server: str) -> frozenset[str]:
        """Return the tokens that were sent to a server lately, which nobody else may read."""
        keeper = self._keepers.get(server)
        return frozenset() if keeper is None else keeper.sent

    async def close(self, server: str) -> None:
        """Let go of a server's tokens, once a renewal under way has ended."""
        self._logins.pop(server, None)
        self._stamps.pop(server, None)
        keeper = self._keepers.pop(server, None)
        if keeper is not None:
            await keeper.close()

    def _read_login(self, server: str, config: ServerConfig) -> str:
        if self._store is None or config.auth is not Auth.OAUTH:
            return ""
        try:
            tokens = self._store.read(server)
        except BadTokenFile:
            return ""
        if tokens is None or not (tokens.access_token or tokens.refresh_token):
            return ""
        return tokens.login or "by hand"
