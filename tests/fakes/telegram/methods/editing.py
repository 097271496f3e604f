"""Changing and removing messages, reacting to them, answering presses."""

from collections.abc import Mapping
from typing import Any, Final

from tests.fakes.telegram.chats import visible
from tests.fakes.telegram.errors import bad_request, not_modified, too_old
from tests.fakes.telegram.keyboards import is_inline
from tests.fakes.telegram.methods.call import Asked, Method
from tests.fakes.telegram.methods.reactions import REACTIONS
from tests.fakes.telegram.state import Chat, Json, Message

DELETABLE_SECONDS: Final = 48 * 3600
MAX_TOAST: Final = 200


async def edit_message_text(asked: Asked) -> Any:
    body, entities = asked.body()
    markup = _inline(asked)
    preview = asked.params.mapping("link_preview_options")
    message = _own(asked, asked.chat())
    if message.media:
        raise bad_request("there is no text in the message to edit")
    return _changed(asked, message, body=body, entities=entities, markup=markup, preview=preview)


async def edit_message_caption(asked: Asked) -> Any:
    body, entities = asked.caption()
    markup = _inline(asked)
    message = _own(asked, asked.chat())
    if not message.media:
        raise bad_request("there is no caption in the message to edit")
    return _changed(asked, message, body=body, entities=entities, markup=markup, preview=None)


async def edit_message_reply_markup(asked: Asked) -> Any:
    markup = _inline(asked)
    message = _own(asked, asked.chat())
    return _changed(
        asked,
        message,
        body=message.text,
        entities=message.entities,
        markup=markup,
        preview=message.preview,
    )


async def delete_message(asked: Asked) -> Any:
    chat = asked.chat()
    _delete(asked, chat, asked.params.whole("message_id"))
    return True


async def delete_messages(asked: Asked) -> Any:
    chat = asked.chat()
    for message_id in asked.params.array("message_ids"):
        if visible(chat, message_id) is not None:
            _delete(asked, chat, message_id)
    return True


async def set_message_reaction(asked: Asked) -> Any:
    chat = asked.chat()
    message = visible(chat, asked.params.whole("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reactions: list[Json] = asked.params.array("reaction")
    asked.params.flag("is_big")
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    if any(r["type"] != "emoji" or r["emoji"] not in REACTIONS for r in reactions):
        raise bad_request("REACTION_INVALID")
    message.reactions[asked.bot.id] = [reaction["emoji"] for reaction in reactions]
    asked.service.changed()
    return True


async def answer_callback_query(asked: Asked) -> Any:
    query = asked.bot.queries.get(asked.params.text("callback_query_id"))
    toast = asked.params.text("text")
    alert = asked.params.flag("show_alert")
    asked.params.whole("cache_time")
    if len(toast) > MAX_TOAST:
        raise bad_request("MESSAGE_TOO_LONG")
    deadline = asked.service.limits.answer_seconds
    if query is None or query.answered or asked.service.now() - query.at > deadline:
        raise too_old()
    query.answered, query.text, query.alert = True, toast, alert
    asked.service.changed()
    return True


def _inline(asked: Asked) -> Json | None:
    markup = asked.markup()
    if markup is not None and not is_inline(markup):
        raise bad_request("inline keyboard expected")
    return markup


def _own(asked: Asked, chat: Chat) -> Message:
    message = visible(chat, asked.params.whole("message_id"))
    if message is None:
        raise bad_request("message to edit not found")
    other_markup = message.markup is not None and not is_inline(message.markup)
    if not message.by_bot or message.notice or other_markup:
        raise bad_request("message can't be edited")
    return message


def _changed(
    asked: Asked,
    message: Message,
    *,
    body: str,
    entities: list[Json],
    markup: Json | None,
    preview: Json | None,
) -> Json:
    new = (body, entities, markup, preview)
    if new == (message.text, message.entities, message.markup, message.preview):
        raise not_modified()
    if body != message.text:
        message.past.append(message.text)
    message.text, message.entities, message.markup, message.preview = new
    message.edit_date = int(asked.service.now())
    asked.service.changed()
    return asked.shown(message)


def _delete(asked: Asked, chat: Chat, message_id: int) -> None:
    message = visible(chat, message_id)
    if message is None:
        raise bad_request("message to delete not found")
    foreign = not message.by_bot and chat.kind != "private"
    if foreign and chat.bot_status != "administrator":
        raise bad_request("message can't be deleted")
    if asked.service.now() - message.date > DELETABLE_SECONDS:
        raise bad_request("message can't be deleted for everyone")
    message.deleted = True
    asked.service.changed()


METHODS: Mapping[str, Method] = {
    "editMessageText": edit_message_text,
    "editMessageCaption": edit_message_caption,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "setMessageReaction": set_message_reaction,
    "answerCallbackQuery": answer_callback_query,
}
