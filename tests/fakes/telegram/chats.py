"""Finding chats and putting messages into them, with the counters Telegram uses."""

from typing import Any

from tests.fakes.telegram.errors import bad_request, forbidden, migrated
from tests.fakes.telegram.service import Service
from tests.fakes.telegram.state import GENERAL_TOPIC, Bot, Chat, Message


def resolve(bot: Bot, chat_id: str) -> Chat:
    """Return the chat an id or a public @name stands for.

    Raises:
        ApiError: there is none, or it moved.
    """
    if not chat_id:
        raise bad_request("chat_id is empty")
    if chat_id.startswith("@"):
        name = chat_id[1:].lower()
        public = (c for c in bot.chats.values() if c.kind != "private" and c.username)
        chat = next((c for c in public if str(c.username).lower() == name), None)
    else:
        chat = bot.chats.get(int(chat_id)) if chat_id.lstrip("-").isdecimal() else None
    if chat is None:
        raise bad_request("chat not found")
    if chat.migrated_to is not None:
        raise migrated(chat.migrated_to)
    return chat


def reachable(bot: Bot, chat_id: str) -> Chat:
    """Return the chat when the bot may write there.

    Raises:
        ApiError: it may not.
    """
    chat = resolve(bot, chat_id)
    if chat.kind == "private":
        if chat.blocked:
            raise forbidden("bot was blocked by the user")
        if not chat.started:
            raise forbidden("bot can't initiate conversation with a user")
        return chat
    if chat.bot_status == "kicked":
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if chat.bot_status == "left":
        raise forbidden(f"bot is not a member of the {chat.kind} chat")
    if chat.bot_status == "restricted":
        raise bad_request("not enough rights to send text messages to the chat")
    if chat.kind == "channel" and chat.bot_status != "administrator":
        raise bad_request("need administrator rights in the channel chat")
    return chat


def thread_of(chat: Chat, thread: int | None) -> int | None:
    """Return the topic a send names.

    Raises:
        ApiError: there is no such topic.
    """
    if thread is None:
        return None
    if thread == GENERAL_TOPIC or thread not in chat.topics:
        raise bad_request("message thread not found")
    if chat.topics[thread].closed and chat.bot_status != "administrator":
        raise bad_request("TOPIC_CLOSED")
    return thread


def post(service: Service, bot: Bot, chat: Chat, *, by_bot: bool, **content: Any) -> Message:
    """Put a message into the chat under the next id."""
    counter = chat if chat.broad else bot
    counter.last_message += 1
    message = Message(
        id=counter.last_message,
        chat_id=chat.id,
        date=int(service.now()),
        by_bot=by_bot,
        **content,
    )
    if chat.kind == "channel" and message.sender_chat is None:
        message.sender, message.sender_chat = None, chat.id
    chat.messages[message.id] = message
    if by_bot:
        chat.draft = None
    service.changed()
    return message


def visible(chat: Chat, message_id: int) -> Message | None:
    message = chat.messages.get(message_id)
    return None if message is None or message.deleted else message
