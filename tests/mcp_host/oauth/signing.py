"""One server entry whose sign-in is kept in a directory of its own, and people who sign in to it."""

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import httpx

from gateway.ports import Clock
from gateway.ports.signing_in import DeviceCode, Person, SignInLink
from gateway.runtime.clock import SystemClock
from mcp_host.oauth.config import Flow
from mcp_host.oauth.keeper import TokenKeeper
from mcp_host.oauth.login import sign_in
from mcp_host.oauth.tokens import Tokens, TokenStore
from mcp_host.server_config import ServerConfig
from tests.fakes.oauth import World, approve

SERVER: Final = "s"


def entry(world: World, **oauth: Any) -> ServerConfig:
    """Return the entry of the world's MCP server."""
    return ServerConfig.model_validate({"url": world.url, "auth": "oauth", "oauth": oauth})


class Pasting:
    """Implements `gateway.ports.signing_in.Person`: pastes what a test puts into `lines`."""

    def __init__(self, *, world: World | None = None) -> None:
        self.world = world
        self.links: list[SignInLink] = []
        self.codes: list[DeviceCode] = []
        self.told: list[str] = []
        self.pages: list[httpx.Response] = []
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.shown = asyncio.Event()

    async def show_link(self, link: SignInLink) -> None:
        self.links.append(link)
        self.shown.set()

    async def show_code(self, code: DeviceCode) -> None:
        self.codes.append(code)
        self.shown.set()

    async def pasted(self) -> str:
        return await self.lines.get()

    def tell(self, text: str) -> None:
        self.told.append(text)

    async def browse(self, url: str) -> None:
        """Go to a page of this machine as a browser does."""
        async with httpx.AsyncClient(trust_env=False) as browser:
            self.pages.append(await browser.get(url))


class Willing(Pasting):
    """Says yes at once, in a browser that gets back, or on the device of a `world`."""

    async def show_link(self, link: SignInLink) -> None:
        await super().show_link(link)
        await self.browse(await approve(link.url))

    async def show_code(self, code: DeviceCode) -> None:
        await super().show_code(code)
        if self.world is not None:
            self.world.decide(code.user_code)


class Signing:
    """The sign-in to one server."""

    def __init__(self, home: Path, world: World, clock: Clock | None = None) -> None:
        self.world = world
        self.folder = home / "mcp-tokens"
        self.store = TokenStore(self.folder)
        self._clock = clock or SystemClock()

    async def sign_in(
        self,
        config: ServerConfig | None = None,
        *,
        person: Person | None = None,
        document_url: str = "",
        flow: Flow | None = None,
    ) -> Tokens:
        """Sign a person in, by default one who says yes at once."""
        return await sign_in(
            SERVER,
            config or entry(self.world),
            store=self.store,
            person=person or Willing(world=self.world),
            environ=os.environ,
            clock=self._clock,
            document_url=document_url,
            flow=flow,
        )

    def keeper(self, config: ServerConfig | None = None) -> TokenKeeper:
        """Return a new keeper of the tokens."""
        return TokenKeeper(
            SERVER,
            config or entry(self.world),
            store=self.store,
            environ=os.environ,
            clock=self._clock,
        )

    def stored(self) -> Tokens:
        """Return what the file holds now."""
        tokens = self.store.read(SERVER)
        assert tokens is not None
        return tokens

    def write_by_hand(self, text: str) -> Path:
        """Put a file there as a person would."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.store.path(SERVER)
        path.write_text(text)
        return path
