"""What people do in chats, and what they see: the side of the server a test works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.telegram import text, wire
from tests.fakes.telegram.chats import post, visible
from tests.fakes.telegram.files import described, keep
from tests.fakes.telegram.methods.accounts import commands_seen
from tests.fakes.telegram.service import Service
from tests.fakes.telegram.state import Bot, BotStatus, Chat, Json, Message, Person, Query, Topic

WAIT_SECONDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A pressed button; `query` shows what the bot answered."""

    service: Service
    query: Query

    async def answered(self, *, seconds: float = WAIT_SECONDS) -> Query:
        """Return once the bot answered: the client's spinner ends."""
        what = f"an answer to the press {self.query.id}"
        await self.service.until(lambda: self.query.answered, seconds=seconds, what=what)
        return self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDriver:
    """One chat with one bot. Whoever acts is `by`; without it the first person of the chat."""

    service: Service
    bot: Bot
    state: Chat
    people: list[Person] = field(default_factory=list[Person])
    topic: int | None = None
    """When set, everything said goes there."""

    @property
    def id(self) -> int:
        return self.state.id

    @property
    def messages(self) -> list[Message]:
        """What the chat (or the topic) shows now, oldest first."""
        shown = self.state.shown
        return [m for m in shown if m.thread == self.topic] if self.topic is not None else shown

    @property
    def replies(self) -> list[Message]:
        """What the bot wrote and is still there."""
        return [m for m in self.messages if m.by_bot and not m.notice]

    @property
    def texts(self) -> list[str]:
        return [m.text for m in self.replies]

    @property
    def draft(self) -> str | None:
        """The preview the person sees now."""
        draft = self.state.draft
        return draft.text if draft and draft.until > self.service.now() else None

    async def wait_for(
        self,
        wanted: Callable[[Message], object],
        *,
        seconds: float = WAIT_SECONDS,
        what: str = "such a message",
    ) -> Message:
        """Return the first message shown that is wanted, as soon as there is one."""

        def found() -> Message | None:
            return next((m for m in self.messages if wanted(m)), None)

        try:
            return await self.service.until(found, seconds=seconds, what=what)
        except AssertionError as error:
            shown = [(m.id, m.by_bot, m.text, m.labels) for m in self.messages]
            raise AssertionError(f"{error}; the chat shows {shown}") from None

    async def wait_for_reply(self, saying: str, *, seconds: float = WAIT_SECONDS) -> Message:
        """Return the first message of the bot that contains the words."""
        return await self.wait_for(
            lambda m: m.by_bot and saying in m.text,
            seconds=seconds,
            what=f"a reply with {saying!r}",
        )

    def menu(self, *, by: Person | None = None) -> list[tuple[str, str]]:
        """Return the commands that somebody sees in this chat, with their summaries."""
        found = commands_seen(self.bot, self.state, self._who(by))
        return [(item["command"], item["description"]) for item in found]

    async def say(
        self, words: str, *, by: Person | None = None, reply_to: Message | None = None
    ) -> Message:
        """Write a message."""
        return self._post(by, reply_to=reply_to, text=words, entities=text.with_found(words, []))

    async def send_file(
        self,
        kind: str,
        data: bytes,
        *,
        name: str = "file.bin",
        media_type: str = "application/octet-stream",
        caption: str = "",
        size: int | None = None,
        by: Person | None = None,
        album: str | None = None,
    ) -> Message:
        """Send a document, photo, voice, audio or video; `size` is what it claims to be."""
        file = keep(self.service.world, data, name, media_type, size=size)
        media = described(kind, file, {})
        entities = text.with_found(caption, [])
        return self._post(by, text=caption, entities=entities, media=media, album=album)

    async def say_as_chat(
        self, words: str, *, author: "ChatDriver | None" = None, stand_in: bool = True
    ) -> Message:
        """Write as this chat (an anonymous admin) or as a channel.

        Telegram names an account of its own as the sender; not `stand_in` leaves it out.
        """
        message = self._put(
            text=words,
            entities=text.with_found(words, []),
            sender_chat=self.id if author is None else author.id,
            stand_in=stand_in and self.state.kind != "channel",
        )
        self._tell(message)
        return message

    async def edit(self, message: Message, words: str) -> None:
        """Change a message somebody wrote."""
        message.past.append(message.text)
        message.text, message.entities = words, text.with_found(words, [])
        message.edit_date = int(self.service.now())
        self._tell(message, edited=True)
        self.service.changed()

    async def delete(self, message: Message) -> None:
        """Remove a message: bots are not told."""
        message.deleted = True
        self.service.changed()

    async def press(
        self,
        label: str = "",
        *,
        by: Person | None = None,
        message: Message | None = None,
        data: str | None = None,
    ) -> Press:
        """Press the newest button with that label; with `data` one a client still shows."""
        under = message or self._newest_with(label)
        pressed = data if data is not None else under.data_of(label)
        if pressed is None:
            raise AssertionError(f"no button {label!r} under {under.text!r}: {under.labels}")
        who = self._who(by)
        self.bot.last_query += 1
        query = Query(
            id=f"{self.bot.id}{self.bot.last_query:06}",
            at=self.service.now(),
            chat_id=self.id,
            message_id=under.id,
            by=who.id,
            data=pressed,
        )
        self.bot.queries[query.id] = query
        gone = visible(self.state, under.id) is None
        world = self.service.world
        payload: Json = {
            "id": query.id,
            "from": wire.person(who),
            "chat_instance": f"{self.bot.id}{abs(self.id)}",
            "data": pressed,
            "message": wire.inaccessible(world, self.state, under.id)
            if gone
            else wire.message(world, self.bot, self.state, under),
        }
        self.service.emit(self.bot, self.state, "callback_query", payload)
        return Press(service=self.service, query=query)

    async def react(self, message: Message, emoji: str, *, by: Person | None = None) -> None:
        """React to a message; a bot hears of it as an admin that asked for it."""
        who = self._who(by)
        old = [{"type": "emoji", "emoji": e} for e in message.reactions.get(who.id, [])]
        message.reactions[who.id] = [emoji] if emoji else []
        if self.state.kind != "private" and self.state.bot_status != "administrator":
            return
        payload: Json = {
            "chat": wire.chat_head(self.service.world, self.state),
            "message_id": message.id,
            "user": wire.person(who),
            "date": int(self.service.now()),
            "old_reaction": old,
            "new_reaction": [{"type": "emoji", "emoji": emoji}] if emoji else [],
        }
        self.service.emit(self.bot, self.state, "message_reaction", payload)

    def in_topic(self, topic: Topic) -> "ChatDriver":
        """Return the same chat, seen through one of its topics."""
        return ChatDriver(
            service=self.service,
            bot=self.bot,
            state=self.state,
            people=self.people,
            topic=topic.id,
        )

    async def open_topic(self, name: str, *, by: Person | None = None) -> "ChatDriver":
        """Open a topic; its id is the id of the message that says so."""
        who = self._who(by)
        created = {"name": name, "icon_color": 0x6FB9F0}
        message = self._put(sender=who.id, notice={"forum_topic_created": created})
        message.thread = message.id
        topic = Topic(id=message.id, name=name)
        self.state.topics[topic.id] = topic
        self._tell(message)
        return self.in_topic(topic)

    async def close_topic(self) -> None:
        self.state.topics[self.topic or 0].closed = True

    async def delete_topic(self) -> None:
        """Delete it with its messages; bots are not told."""
        del self.state.topics[self.topic or 0]
        for message in self.state.messages.values():
            if message.thread == self.topic:
                message.deleted = True

    async def block(self) -> None:
        """Block the bot in a private chat."""
        self.state.blocked = True
        self._status("kicked", old="member")

    async def unblock(self) -> None:
        self.state.blocked = False
        self._status("member", old="kicked")

    async def set_bot(self, status: BotStatus) -> None:
        """Make the bot of a group an admin or a member, restrict or remove it."""
        old, self.state.bot_status = self.state.bot_status, status
        self._status(status, old=old)

    async def migrate(self) -> "ChatDriver":
        """Make a supergroup of a group, as happens by itself when it grows."""
        new_id = -1_000_000_000_000 - abs(self.id)
        new = Chat(
            id=new_id,
            kind="supergroup",
            title=self.state.title,
            members=dict(self.state.members),
            bot_status=self.state.bot_status,
        )
        self.bot.chats[new_id] = new
        sender = self.people[0].id
        self._tell(self._put(sender=sender, notice={"migrate_to_chat_id": new_id}))
        self.state.migrated_to = new_id
        driver = ChatDriver(service=self.service, bot=self.bot, state=new, people=self.people)
        driver._tell(driver._put(sender=sender, notice={"migrate_from_chat_id": self.id}))
        return driver

    def _newest_with(self, label: str) -> Message:
        found = [m for m in self.messages if not label or label in m.labels]
        if not found:
            shown = [(m.text, m.labels) for m in self.messages if m.by_bot]
            raise AssertionError(f"no message with a button {label!r}: {shown}")
        return found[-1]

    def _who(self, by: Person | None) -> Person:
        return by if by is not None else self.people[0]

    def _post(
        self, by: Person | None, *, reply_to: Message | None = None, **content: Any
    ) -> Message:
        who = self._who(by)
        if self.state.kind not in ("private", "channel"):
            self.state.members.setdefault(who.id, "member")
        if self.state.kind == "private":
            self.state.started = True
        message = self._put(
            sender=who.id, reply_to=None if reply_to is None else reply_to.id, **content
        )
        if reply_to is not None and self.topic is None and not self.state.forum:
            # Outside of forums a supergroup names a chain of replies after its first message.
            chain = reply_to.thread or reply_to.id
            message.thread = chain if self.state.kind == "supergroup" else None
        self._tell(message)
        return message

    def _put(self, **content: Any) -> Message:
        return post(self.service, self.bot, self.state, by_bot=False, thread=self.topic, **content)

    def _tell(self, message: Message, *, edited: bool = False) -> None:
        if not self._heard(message):
            return
        kind = "channel_post" if self.state.kind == "channel" else "message"
        body = wire.message(self.service.world, self.bot, self.state, message)
        self.service.emit(self.bot, self.state, f"edited_{kind}" if edited else kind, body)

    def _heard(self, message: Message) -> bool:
        """Whether the bot is told: in groups with privacy it hears only what is meant for it."""
        chat, bot = self.state, self.bot
        if chat.kind == "private":
            return not chat.blocked
        if chat.bot_status in ("left", "kicked"):
            return False
        if bot.reads_all or chat.bot_status == "administrator" or message.notice:
            return True
        answered = chat.messages.get(message.reply_to or 0)
        if answered is not None and answered.by_bot:
            return True
        return any(self._is_for_bot(message, entity) for entity in message.entities)

    def _is_for_bot(self, message: Message, entity: Json) -> bool:
        said = text.part(message.text, entity).lower()
        mention = f"@{self.bot.username.lower()}"
        if entity["type"] == "bot_command":
            return "@" not in said or said.endswith(mention)
        return entity["type"] == "mention" and said == mention

    def _status(self, new: str, *, old: str) -> None:
        world, bot = self.service.world, self.bot
        payload: Json = {
            "chat": wire.chat_head(world, self.state),
            "from": wire.person(self.people[0]),
            "date": int(self.service.now()),
            "old_chat_member": wire.member(world, bot, bot.id, old),
            "new_chat_member": wire.member(world, bot, bot.id, new),
        }
        self.service.emit(bot, self.state, "my_chat_member", payload)
