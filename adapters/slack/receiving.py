"""What one app is told, on slack-bolt: persisted in a global middleware, so before it is acknowledged.

Workspaces into which the same app is installed share its sockets: each thing goes to the account of
its workspace, whichever socket it came by.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from adapters.connection import Connection
from adapters.slack.client import Client, quiet
from adapters.slack.config import Mode, SlackAccount
from adapters.slack.feeding import Feed
from adapters.slack.ids import teams_of
from gateway.ports import Clock

logger = logging.getLogger(__name__)

ACKNOWLEDGED: Final = 200
TOLD_AGAIN: Final = 503
"""Whatever is not 200 is no acknowledgement: Slack tells it again."""


class Reception:
    """One app, for all its accounts of this process; whoever serves it serves them all."""

    def __init__(self, accounts: int, clock: Clock) -> None:
        self.clock = clock
        self._expected = accounts
        self._feeds: dict[str, Feed] = {}
        self._strangers: set[str] = set()
        self._serving = asyncio.Lock()

    @property
    def feeds(self) -> Iterable[Feed]:
        """The accounts that know who they are."""
        return tuple(self._feeds.values())

    @property
    def connections(self) -> Iterable[Connection]:
        """How those are connected; they share what there is."""
        return tuple(feed.connection for feed in self.feeds)

    @asynccontextmanager
    async def attended(self, feed: Feed) -> AsyncGenerator[None]:
        """Let a workspace's things go to a feed until the block ends."""
        self._feeds[feed.us.team] = feed
        try:
            yield
        finally:
            del self._feeds[feed.us.team]

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        """Wait until nobody else serves the app; the block is to do it then."""
        async with self._serving:
            yield

    def app(self, account: SlackAccount) -> AsyncApp:
        """Return the framework's side of it: what comes is verified, then handed to `take`."""

        async def authorize(team_id: str | None, enterprise_id: str | None) -> AuthorizeResult:
            # Which account it is, and whether it is ourselves, is judged where it is read.
            return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id)

        app: Any = AsyncApp(
            logger=quiet,
            client=AsyncWebClient(base_url=f"{account.base_url}/", logger=quiet),
            signing_secret=account.signing_secret.get_secret_value() or "none",
            authorize=authorize,
            request_verification_enabled=account.mode is Mode.HTTP,
            ignoring_self_events_enabled=False,
            ssl_check_enabled=False,
            attaching_function_token_enabled=False,
        )

        async def persist(body: Mapping[str, Any]) -> BoltResponse:
            taken = await self.take(body)
            return BoltResponse(status=ACKNOWLEDGED if taken else TOLD_AGAIN, body="")

        app.use(persist)
        return cast("AsyncApp", app)

    async def take(self, body: Mapping[str, Any]) -> bool:
        """Hand something to its workspace's account; False when it must be told again."""
        teams = teams_of(body)
        feed = next((self._feeds[team] for team in teams if team in self._feeds), None)
        if feed is not None:
            return await feed.take(body)
        if len(self._feeds) < self._expected:
            # Its account may only not know yet who it is.
            return False
        for team in set(teams[:1]) - self._strangers:
            self._strangers.add(team)
            logger.warning("the app is told things of workspace %s, which is not configured", team)
        return True


class Introduced:
    """Who an account is, as Slack says."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.team = ""
        self.user = ""
        self.bot = ""
        self.scopes: frozenset[str] = frozenset()

    async def ask(self) -> None:
        """Ask.

        Raises:
            AdapterError: It cannot be known now.
        """
        who, self.scopes = await self._client.scopes()
        self.team, self.user = str(who.get("team_id") or ""), str(who.get("user_id") or "")
        self.bot = str(who.get("bot_id") or "")
