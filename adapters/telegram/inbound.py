"""One update becomes one event, or nothing. Pure: what has to be looked up is handed in."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from telegram import (
    CallbackQuery,
    Chat,
    MaybeInaccessibleMessage,
    Message,
    MessageEntity,
    Update,
    User,
)
from telegram.constants import ZERO_DATE

from adapters.telegram.attachments import attachments_of, words_of
from adapters.telegram.buttons import token_in
from adapters.telegram.ids import GENERAL_TOPIC, PLATFORM
from adapters.telegram.payload import Payload
from gateway.domain.delivery import SentMessage
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
    MessageEdited,
)

OFFSET: Final = "offset"
"""The name of the position an update completes."""

_COMMAND: Final = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,63})(?:@(\w+))?(?:\s+(.*))?", re.DOTALL)
_TEXT_TYPES: Final = (MessageEntity.MENTION, MessageEntity.BOT_COMMAND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Us:
    """Which bot reads, and how it divides plain groups; 0 and "" are what is not known of it yet."""

    id: int
    username: str
    account: str = ""
    sessions_per_user: bool = True

    def dedupe(self, update: Update) -> str:
        """Return what a redelivery of an update has in common with the first delivery."""
        return f"{PLATFORM}:{self.account or self.id}:{update.update_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A group became a supergroup, which has another id."""

    old: str
    new: str


def position_of(update: Update) -> tuple[str, str]:
    """Return the position behind an update."""
    return OFFSET, str(update.update_id + 1)


def migration_of(update: Update) -> Migration | None:
    """Return the move of a chat that an update tells of."""
    message = update.effective_message
    if message is None:
        return None
    if message.migrate_to_chat_id:
        return Migration(old=str(message.chat.id), new=str(message.migrate_to_chat_id))
    if message.migrate_from_chat_id:
        return Migration(old=str(message.migrate_from_chat_id), new=str(message.chat.id))
    return None


def message_id_of(update: Update) -> tuple[str, int] | None:
    """Return the chat and id of the message an update brings, seen or not understood."""
    message = update.message or update.channel_post
    return None if message is None else (str(message.chat.id), message.message_id)


def asked_about(update: Update, us: Us) -> tuple[str, int] | None:
    """Return chat and id of our message whose delivery is needed to understand an update."""
    message = update.message
    if message is not None and _replies_to_us(message, us) and message.reply_to_message:
        return str(message.chat.id), message.reply_to_message.message_id
    query = update.callback_query
    if query is not None and query.message is not None and _accessible(query.message) is None:
        return str(query.message.chat.id), query.message.message_id
    return None


def event_of(
    update: Update, us: Us, *, now: datetime, sent: SentMessage | None = None
) -> InboundEvent | None:
    """Return the event of an update; `sent` is the delivery that `asked_about` names."""
    if update.callback_query is not None:
        return _press(update, update.callback_query, us, now=now, sent=sent)
    message = update.message or update.channel_post
    if message is not None:
        return _message(update, message, us, sent=sent)
    edited = update.edited_message or update.edited_channel_post
    return None if edited is None else _edit(update, edited, us)


# --- messages -----------------------------------------------------------------------


def _message(
    update: Update, message: Message, us: Us, *, sent: SentMessage | None
) -> InboundEvent | None:
    sender = _sender(message)
    if sender is None or sender.id == str(us.id):
        return None
    answer = _answer(update, message, us, sender, sent)
    if answer is not None:
        return answer
    command = _COMMAND.fullmatch(message.text.strip()) if message.text else None
    if command is not None:
        return _command(update, message, us, sender, command)
    attachments = attachments_of(message)
    text = message.text or message.caption or words_of(message)
    if not text and not attachments:
        return None
    return InboundMessage(
        place=_place(message.chat, us, sender=sender, message=message),
        native_id=str(message.message_id),
        dedupe=us.dedupe(update),
        sender=sender,
        sent_at=message.date,
        text=text,
        attachments=attachments,
        reply_to=_reply_to(message),
        mentions_us=_mentions_us(message, us),
        album=message.media_group_id or "",
    )


def _answer(
    update: Update, message: Message, us: Us, sender: Actor, sent: SentMessage | None
) -> FormSubmitted | None:
    """Return the answer a reply gives to a card that takes typed text."""
    text = message.text or message.caption
    ask = None if sent is None else Payload.from_json(sent.payload).ask
    if sent is None or ask is None or not text:
        return None
    return FormSubmitted(
        place=_place(message.chat, us, sender=sender, message=message),
        native_id=str(message.message_id),
        dedupe=us.dedupe(update),
        sender=sender,
        sent_at=message.date,
        token=ask.token,
        values={ask.field: text},
    )


def _command(
    update: Update, message: Message, us: Us, sender: Actor, found: re.Match[str]
) -> CommandGiven | None:
    name, addressed, argument = found.groups()
    if addressed is not None and addressed.casefold() != us.username.casefold():
        return None
    return CommandGiven(
        place=_place(message.chat, us, sender=sender, message=message),
        native_id=str(message.message_id),
        dedupe=us.dedupe(update),
        sender=sender,
        sent_at=message.date,
        name=name.lower().replace("_", "-"),
        argument=(argument or "").strip(),
        mentions_us=addressed is not None or _mentions_us(message, us),
    )


def _edit(update: Update, message: Message, us: Us) -> MessageEdited | None:
    sender = _sender(message)
    text = message.text or message.caption
    if sender is None or sender.id == str(us.id) or not text:
        return None
    return MessageEdited(
        place=_place(message.chat, us, sender=sender, message=message),
        native_id=f"{message.message_id}.{update.update_id}",
        dedupe=us.dedupe(update),
        sender=sender,
        sent_at=message.edit_date or message.date,
        edited=str(message.message_id),
        text=text,
    )


def _reply_to(message: Message) -> str | None:
    replied = message.reply_to_message
    # In a topic everything "replies" to the message that opened it.
    if replied is None or replied.forum_topic_created is not None:
        return None
    return str(replied.message_id)


def _replies_to_us(message: Message, us: Us) -> bool:
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None:
        return False
    return replied.from_user is not None and replied.from_user.id == us.id != 0


def _mentions_us(message: Message, us: Us) -> bool:
    if message.chat.type == Chat.PRIVATE or _replies_to_us(message, us):
        return True
    # Without a name nothing names us.
    name = f"@{us.username.casefold()}" if us.username else None
    found = {**message.parse_entities(), **message.parse_caption_entities()}
    for entity, text in found.items():
        if entity.type == MessageEntity.TEXT_MENTION and entity.user is not None:
            if entity.user.id == us.id != 0:
                return True
        elif name and entity.type in _TEXT_TYPES and text.casefold().endswith(name):
            return True
    return False


# --- presses ------------------------------------------------------------------------


def _press(
    update: Update, query: CallbackQuery, us: Us, *, now: datetime, sent: SentMessage | None
) -> ButtonPressed | None:
    shown = query.message
    if shown is None:
        return None
    sender = _person(query.from_user)
    message = _accessible(shown)
    place = _place(shown.chat, us, sender=sender, message=message)
    if message is None and sent is not None:
        # What is left of an old message does not say its topic; its delivery does.
        place = sent.place
    return ButtonPressed(
        place=place,
        native_id=query.id,
        dedupe=us.dedupe(update),
        sender=sender,
        sent_at=now,
        token=token_in(query.data or ""),
        interaction=query.id,
    )


def _accessible(shown: MaybeInaccessibleMessage) -> Message | None:
    """Return a message that is still there; of others only chat and id are told, and no date."""
    # The library builds a whole message either way.
    return shown if isinstance(shown, Message) and shown.date > ZERO_DATE else None


# --- who and where ------------------------------------------------------------------


def _sender(message: Message) -> Actor | None:
    """Return who wrote: a person, a bot, or the chat an anonymous admin speaks for."""
    if message.sender_chat is not None:
        chat = message.sender_chat
        name = chat.title or chat.full_name or ""
        return Actor(platform=PLATFORM, id=str(chat.id), name=name, is_chat=True)
    if message.from_user is not None:
        return _person(message.from_user)
    if message.chat.type == Chat.CHANNEL:
        name = message.chat.title or ""
        return Actor(platform=PLATFORM, id=str(message.chat.id), name=name, is_chat=True)
    return None


def _person(user: User) -> Actor:
    return Actor(platform=PLATFORM, id=str(user.id), name=user.full_name, is_bot=user.is_bot)


def _place(chat: Chat, us: Us, *, sender: Actor, message: Message | None) -> Place:
    """Return the conversation: topics are shared, a plain group is divided by participant."""
    thread = _topic(chat, message)
    kind = _kind(chat, thread)
    divided = kind in (ChatType.GROUP, ChatType.CHANNEL) and us.sessions_per_user
    return Place(
        platform=PLATFORM,
        account=us.account,
        chat=str(chat.id),
        chat_type=kind,
        thread=thread,
        participant=sender.id if divided else "",
    )


def _kind(chat: Chat, thread: str) -> ChatType:
    if thread:
        return ChatType.TOPIC
    if chat.type == Chat.PRIVATE:
        return ChatType.DM
    return ChatType.CHANNEL if chat.type == Chat.CHANNEL else ChatType.GROUP


def _topic(chat: Chat, message: Message | None) -> str:
    if message is not None and message.is_topic_message and message.message_thread_id:
        return str(message.message_thread_id)
    # Outside of forums a thread is only a chain of replies.
    return GENERAL_TOPIC if chat.is_forum and message is not None else ""
