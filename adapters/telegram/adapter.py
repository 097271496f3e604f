"""One Telegram bot as an `Adapter`: connects, receives, sends, and says how it is."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from telegram import Message, User
from telegram import error as sdk

from adapters.connection import Connection
from adapters.telegram import webhook
from adapters.telegram.client import Client, open_client
from adapters.telegram.config import Mode, TelegramAccount
from adapters.telegram.feeding import Feed, Seen
from adapters.telegram.fetching import Fetcher
from adapters.telegram.ids import PLATFORM, SentIds
from adapters.telegram.inbound import Migration, Us
from adapters.telegram.menu import Menu, Menus
from adapters.telegram.polling import poll
from adapters.telegram.recovery import Recovery
from adapters.telegram.sender import Sender
from adapters.telegram.sentcards import SentCards
from adapters.telegram.settling import Settling
from adapters.telegram.signs import Signs
from adapters.telegram.traffic import Traffic
from gateway.domain.delivery import Delivery, DeliveryKind, Part, Receipt
from gateway.domain.health import Health
from gateway.domain.ids import Place
from gateway.domain.message import Attachment
from gateway.domain.operations.inbound import MigrateChat
from gateway.domain.preview import Preview
from gateway.ports import Clock, EventSink, Media
from gateway.ports.reading import SentMessages

logger = logging.getLogger(__name__)


class ChatMoves(Protocol):
    """The part of the store that follows a group to its new id."""

    async def migrate_chat(self, migrate: MigrateChat) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an account is run with, besides its configuration.

    `on_health` is told every change of the state.
    """

    menus: Sequence[Menu] = ()
    sessions_per_user: bool = True
    on_health: Callable[[Health], None] | None = None


class TelegramAdapter:
    """Implements `Adapter` and its optional ports but none that Telegram lacks; see `open_telegram`."""

    platform = PLATFORM

    def __init__(
        self,
        account: TelegramAccount,
        client: Client,
        fetcher: Fetcher,
        *,
        sent: SentMessages,
        chats: ChatMoves,
        media: Media,
        clock: Clock,
        setting: Setting,
    ) -> None:
        self.account = account.name
        self._config = account
        self._client = client
        self._chats = chats
        self._clock = clock
        self._setting = setting
        self._connection = Connection(PLATFORM, account.name, clock, on_change=setting.on_health)
        self._sent = sent
        self._traffic = Traffic(clock.monotonic)
        self._seen = Seen()
        self._caught_up = asyncio.Event()
        self._cards = SentCards(sent, account.name)
        self._settling = Settling(sent, self._seen, self._caught_up, clock)
        self._fetcher = fetcher
        self._sender = Sender(
            client.bot,
            media=media,
            traffic=self._traffic,
            cards=self._cards,
            store=sent,
            move_chat=self._move_chat,
            clock=clock,
            reply_to=account.reply_to,
        )
        self._signs = Signs(client.bot, self._traffic)
        self._me: User | None = None
        self._menus = Menus(client.bot, setting.menus)

    @property
    def health(self) -> Health:
        """How the connection is; connected only while updates arrive."""
        return self._connection.health

    async def run(self, sink: EventSink) -> None:
        """Feed `sink` until cancelled; whatever goes wrong is shown, waited out and tried again."""
        if self._config.refusal:
            # It ends nothing else, and what is wrong stays to be seen.
            self._connection.off(self._config.refusal)
            await asyncio.Event().wait()
        self._connection.connecting()
        self._caught_up.clear()
        await self._leave_alone()
        self._me = me = await self._introduced()
        feed = Feed(
            sink=sink,
            us=Us(
                id=me.id,
                username=me.username or "",
                account=self.account,
                sessions_per_user=self._setting.sessions_per_user,
            ),
            find_sent=self._cards.find,
            move_chat=self._move_chat,
            connection=self._connection,
            clock=self._clock,
            seen=self._seen,
        )
        if self._config.mode is Mode.WEBHOOK:
            await webhook.receive(
                self._client,
                feed,
                self._config.webhook,
                connection=self._connection,
                clock=self._clock,
                caught_up=self._caught_up,
            )
            return
        await poll(
            self._client,
            feed,
            connection=self._connection,
            clock=self._clock,
            caught_up=self._caught_up,
        )

    async def send(self, delivery: Delivery) -> Receipt:
        """Deliver one text, card, file or edit and return Telegram's id for it."""
        return await self._sender.send(delivery)

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        """Find out what became of a send; an edit may simply be made again."""
        if delivery.kind is DeliveryKind.EDIT:
            return None

        async def edit(message: int, formatted: bool) -> Message | bool:
            return await self._sender.probe(delivery, message, formatted=formatted)

        found = await self._settling.settle(
            delivery,
            edit,
            reads_all=bool(self._me and self._me.can_read_all_group_messages),
            exact=delivery.kind is DeliveryKind.FILE,
        )
        ids = None if found is None else SentIds.parse(found.native_id)
        if ids is None or len(delivery.files) < 2:
            return found
        # An album takes its ids in a row.
        more = tuple(ids.message + n for n in range(1, len(delivery.files)))
        return Receipt(native_id=str(SentIds(message=ids.message, more=more)))

    async def answer_press(self, place: Place, interaction: str, text: str) -> None:
        """Show `text` to the presser alone, above the chat."""
        del place
        await self._sender.answer(interaction, text)

    def fetch(self, file: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file of a message; its bytes come in pieces."""
        return self._fetcher.fetch(file)

    def opening(self, preview: Preview) -> Part | None:
        """Return the silent message that stands for a reply while it is made, where one does."""
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
        """Show for some seconds that an answer is being worked on."""
        await self._signs.show_typing(place)

    async def _leave_alone(self) -> None:
        """Remember which chats an earlier process was to leave alone: the outbox does by itself."""
        parked = await self._sent.parked(PLATFORM, self.account)
        for chat, until in parked.items():
            self._traffic.park(chat, (until - self._clock.now()).total_seconds())

    async def _introduced(self) -> User:
        """Return who we are, once the service says so."""
        recovery = Recovery(self._connection)
        while True:
            try:
                me = await self._client.bot.get_me()
                if self._config.mode is Mode.POLLING:
                    await self._client.bot.delete_webhook()
                await self._menus.show()
            except sdk.TelegramError as error:
                await self._clock.sleep(recovery.failed(error))
            else:
                return me

    async def _move_chat(self, move: Migration) -> None:
        moved = await self._chats.migrate_chat(
            MigrateChat(platform=PLATFORM, account=self.account, old=move.old, new=move.new)
        )
        logger.info("a group moved to another id: %d conversations follow", moved)


@asynccontextmanager
async def open_telegram(
    account: TelegramAccount,
    *,
    sent: SentMessages,
    chats: ChatMoves,
    media: Media,
    clock: Clock,
    setting: Setting | None = None,
) -> AsyncGenerator[TelegramAdapter]:
    """Open an account; its connections close with the block, after the last send."""
    async with open_client(account) as client, aclosing(Fetcher(client.bot)) as fetcher:
        yield TelegramAdapter(
            account,
            client,
            fetcher,
            sent=sent,
            chats=chats,
            media=media,
            clock=clock,
            setting=setting or Setting(),
        )
