"""What every method gets, and the questions most of them ask."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.telegram import text, wire
from tests.fakes.telegram.chats import reachable, thread_of, visible
from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.keyboards import checked
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.service import Service
from tests.fakes.telegram.state import Bot, Chat, Json, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call of one bot."""

    service: Service
    bot: Bot
    params: Params
    method: str

    def problem(self, *problems: str) -> None:
        self.service.violation(*(f"{self.method}: {problem}" for problem in problems))

    def chat(self) -> Chat:
        """Return the chat it may write to."""
        return reachable(self.bot, self.params.text("chat_id"))

    def shown(self, message: Message) -> Json:
        chat = self.bot.chats[message.chat_id]
        return wire.message(self.service.world, self.bot, chat, message)

    def formatted(self, name: str) -> tuple[str, list[Json]]:
        """Return the text or caption of that name with its entities."""
        entities = self.params.array("entities" if name == "text" else f"{name}_entities")
        if self.params.text("parse_mode"):
            self.problem("parse_mode is not modelled here: send entities")
        problems: list[str] = []
        kept, placed = text.formatted(self.params.text(name), entities, problems)
        self.problem(*problems)
        return kept, text.with_found(kept, placed)

    def body(self) -> tuple[str, list[Json]]:
        """Return the text of a message, which must say something."""
        given = self.params.text("text")
        if not given:
            raise bad_request("message text is empty")
        kept, entities = self.formatted("text")
        if not text.is_seen(kept):
            raise bad_request("text must be non-empty")
        if text.units(kept) > text.MAX_TEXT:
            raise bad_request("message is too long")
        return kept, entities

    def caption(self) -> tuple[str, list[Json]]:
        kept, entities = self.formatted("caption")
        if text.units(kept) > text.MAX_CAPTION:
            raise bad_request("message caption is too long")
        return kept, entities

    def markup(self) -> Json | None:
        problems: list[str] = []
        markup = checked(self.params.mapping("reply_markup"), problems)
        self.problem(*problems)
        return markup

    def placed(self, chat: Chat) -> Json:
        """Return where a new message goes: its topic, what it answers, and how loud it is."""
        params = self.params
        given = params.whole("message_thread_id") if params.given("message_thread_id") else None
        thread = thread_of(chat, given)
        answered, quote = self._answered(chat)
        if answered is not None and thread is None and answered.thread in chat.topics:
            thread = answered.thread
        if answered is not None and thread is None and chat.kind == "supergroup":
            # Outside of forums a thread is a chain of replies, named after its first message.
            thread = None if chat.forum else answered.thread or answered.id
        return {
            "thread": thread,
            "reply_to": None if answered is None else answered.id,
            "quote": quote,
            "silent": params.flag("disable_notification"),
            "protected": params.flag("protect_content"),
            "sender": self.bot.id,
        }

    def _answered(self, chat: Chat) -> tuple[Message | None, str | None]:
        reply = self.params.mapping("reply_parameters")
        if reply is None:
            return None, None
        if str(reply.get("chat_id", chat.id)) != str(chat.id):
            self.problem("replies to another chat are not modelled here")
        message = visible(chat, int(reply["message_id"]))
        if message is None:
            if reply.get("allow_sending_without_reply"):
                return None, None
            raise bad_request("message to be replied not found")
        quote = reply.get("quote")
        if quote is not None and quote not in message.text:
            raise bad_request("QUOTE_TEXT_INVALID")
        return message, quote


Method = Callable[[Asked], Awaitable[Any]]
