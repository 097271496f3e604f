"""Our app in one Slack workspace as an `Adapter`: connects, receives, sends, and says how it is."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from adapters.connection import Connection
from adapters.slack import posts
from adapters.slack.client import Client, open_client
from adapters.slack.config import Mode, SlackAccount
from adapters.slack.feeding import Feed
from adapters.slack.fetching import Fetcher
from adapters.slack.history import Missed
from adapters.slack.ids import PLATFORM
from adapters.slack.inbound import Us
from adapters.slack.manifest import SCOPES
from adapters.slack.modals import Modals
from adapters.slack.people import People
from adapters.slack.receiving import Introduced, Reception
from adapters.slack.recovery import Recovery
from adapters.slack.sender import Sender
from adapters.slack.settling import Settling
from adapters.slack.signs import Signs
from adapters.slack.sockets import Sockets
from adapters.slack.streams import StreamMessages
from adapters.slack.traffic import Traffic
from adapters.slack.uploads import Uploads
from adapters.slack.watchdog import Watchdog
from adapters.slack.welcome import Welcome
from gateway.domain.delivery import Delivery, DeliveryKind, Part, Receipt
from gateway.domain.errors import AdapterError
from gateway.domain.health import Health
from gateway.domain.ids import Place
from gateway.domain.message import Attachment
from gateway.domain.preview import Preview
from gateway.ports import Clock, EventSink, Media
from gateway.ports.reading import Inbox, SentMessages

logger = logging.getLogger(__name__)

NEEDED: Final = frozenset(SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an account is run with, besides its configuration.

    `commands` are the names that may be given behind a `!`. `on_health` is told every change.
    """

    commands: frozenset[str] = frozenset()
    sessions_per_user: bool = True
    on_health: Callable[[Health], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What is kept of messages: what was sent, and what was heard."""

    sent: SentMessages
    inbox: Inbox


@dataclass(slots=True)
class App:
    """One app, shared by the accounts of its workspaces in this process."""

    reception: Reception
    histories: "dict[str, Missed]" = field(default_factory=dict[str, Missed])


def new_app(accounts: int, clock: Clock) -> App:
    """Return an app for so many accounts."""
    return App(Reception(accounts, clock))


class SlackAdapter:
    """Implements `Adapter` and every optional port of `gateway.ports.chats`; see `open_slack`."""

    platform = PLATFORM

    def __init__(
        self,
        account: SlackAccount,
        client: Client,
        app: App,
        *,
        books: Books,
        media: Media,
        clock: Clock,
        setting: Setting,
    ) -> None:
        self.account = account.name
        self._config = account
        self._client = client
        self._app = app
        self._books = books
        self._clock = clock
        self._setting = setting
        self._connection = Connection(PLATFORM, account.name, clock, on_change=setting.on_health)
        self._traffic = Traffic(clock.monotonic)
        self._people = People(client, clock)
        self._feed: Feed | None = None
        streams = StreamMessages(client, self._recipient)
        self._sender = Sender(
            client,
            traffic=self._traffic,
            uploads=Uploads(client, media, clock),
            streams=streams,
        )
        self._signs = Signs(client, self._traffic, streams)
        self._settling = Settling(client, books.sent, clock)
        self._fetcher = Fetcher(client, account.base_url)

    @property
    def health(self) -> Health:
        """How the connection is; connected only while things arrive."""
        return self._connection.health

    async def run(self, sink: EventSink) -> None:
        """Feed `sink` until cancelled; whatever goes wrong is shown, waited out and tried again."""
        if self._config.refusal:
            # It ends nothing else, and what is wrong stays to be seen.
            self._connection.off(self._config.refusal)
            await asyncio.Event().wait()
        self._connection.connecting()
        await self._leave_alone()
        who = await self._introduced()
        us = Us(
            team=who.team,
            user=who.user,
            bot=who.bot,
            account=self.account,
            sessions_per_user=self._setting.sessions_per_user,
            reply_in_thread=self._config.reply_in_thread,
            strict=self._config.strict_mention,
            commands=self._setting.commands,
        )
        self._feed = feed = Feed(
            sink=sink,
            us=us,
            people=self._people,
            modals=Modals(self._client, self._books.sent, self._clock),
            welcome=Welcome(self._client),
            connection=self._connection,
            clock=self._clock,
        )
        app = self._app
        app.histories[us.team] = Missed(self._client, feed, self._books.inbox, self._clock)
        try:
            async with app.reception.attended(feed), app.reception.served():
                await self._serve()
        finally:
            app.histories.pop(us.team, None)

    async def _serve(self) -> None:
        """Receive for every account of the app, until cancelled."""
        reception = self._app.reception
        watch = Watchdog(reception, self._app.histories, self._clock)
        framework = reception.app(self._config)
        if self._config.mode is Mode.HTTP:
            await posts.receive(framework, self._config, reception, watch)
            return
        token = self._config.app_token.get_secret_value()
        await Sockets(reception, framework, self._client, watch, token=token).run()

    async def send(self, delivery: Delivery) -> Receipt:
        """Deliver one text, card, file or edit and return Slack's id for it."""
        return await self._sender.send(delivery)

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        """Find out what became of a send; an edit may simply be made again."""
        if delivery.kind is DeliveryKind.EDIT:
            return None
        channel = await self._sender.channel(delivery.place)
        return await self._settling.settle(delivery, channel)

    async def answer_press(self, place: Place, interaction: str, text: str) -> None:
        """Show `text` to the presser alone, in the channel or thread of the card."""
        await self._sender.whisper(place, interaction, text)

    def fetch(self, file: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file of a message; its bytes come in pieces."""
        return self._fetcher.fetch(file)

    def opening(self, preview: Preview) -> Part | None:
        """Return the message that stands for a reply while it is made."""
        return self._signs.opening(preview)

    def preview_wait(self, place: Place) -> float:
        """Return for how many seconds no preview may be shown in a chat."""
        return self._signs.preview_wait(place)

    async def show_preview(self, preview: Preview) -> None:
        """Show a reply as far as it is made."""
        await self._signs.show_preview(preview)

    async def show_waiting(self, place: Place, native_id: str) -> bool:
        """Mark a message as one that is answered later."""
        return await self._signs.show_waiting(place, native_id)

    async def show_typing(self, place: Place) -> None:
        """Show for some time that an answer is being worked on."""
        await self._signs.show_typing(place)

    async def _leave_alone(self) -> None:
        """Remember which chats an earlier process was to leave alone: the outbox does by itself."""
        parked = await self._books.sent.parked(PLATFORM, self.account)
        for chat, until in parked.items():
            self._traffic.park(chat, (until - self._clock.now()).total_seconds())

    async def _introduced(self) -> Introduced:
        """Return who we are, once the service says so: until then nobody can have called us."""
        who, recovery = Introduced(self._client), Recovery()
        while True:
            try:
                await who.ask()
            except AdapterError as error:
                await self._clock.sleep(recovery.failed(error, (self._connection,)))
                continue
            lacking = NEEDED - who.scopes
            if lacking and who.scopes:
                logger.warning(
                    "the Slack app lacks scopes (%s): take over the manifest that "
                    "`hermes gateway setup slack --manifest` prints, and install it again",
                    ", ".join(sorted(lacking)),
                )
            return who

    def _recipient(self, place: Place) -> tuple[str, str]:
        """Return for whom a reply in a place is, and their workspace; "" when that is not known."""
        if self._feed is None:
            return "", ""
        return self._feed.last_speaker(place), self._feed.us.team


@asynccontextmanager
async def open_slack(
    account: SlackAccount,
    app: App,
    *,
    books: Books,
    media: Media,
    clock: Clock,
    setting: Setting | None = None,
) -> AsyncGenerator[SlackAdapter]:
    """Open an account; its connections close with the block, after the last send."""
    async with open_client(account) as client:
        yield SlackAdapter(
            account,
            client,
            app,
            books=books,
            media=media,
            clock=clock,
            setting=setting or Setting(),
        )
