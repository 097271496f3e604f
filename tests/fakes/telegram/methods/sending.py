"""Sending text, previews of text and signs of life."""

from collections.abc import Mapping
from typing import Any, Final

from tests.fakes.telegram import text
from tests.fakes.telegram.chats import post, thread_of
from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.methods.call import Asked, Method
from tests.fakes.telegram.state import ChatAction, Draft

_ACTIONS: Final = (
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document"
    " choose_sticker find_location record_video_note upload_video_note"
)


async def send_message(asked: Asked) -> Any:
    body, entities = asked.body()
    markup = asked.markup()
    chat = asked.chat()
    message = post(
        asked.service,
        asked.bot,
        chat,
        by_bot=True,
        text=body,
        entities=entities,
        markup=markup,
        preview=asked.params.mapping("link_preview_options"),
        **asked.placed(chat),
    )
    return asked.shown(message)


async def send_message_draft(asked: Asked) -> Any:
    """Show a preview that fades; it is no message and has no id."""
    chat = asked.chat()
    if chat.kind != "private":
        raise bad_request("chat must be a private chat")
    draft = asked.params.whole("draft_id")
    if draft == 0:
        raise bad_request("draft_id must be non-zero")
    if asked.params.given("message_thread_id"):
        thread_of(chat, asked.params.whole("message_thread_id"))
    body, _ = asked.formatted("text")
    if text.units(body) > text.MAX_TEXT:
        raise bad_request("message is too long")
    until = asked.service.now() + asked.service.limits.draft_seconds
    chat.draft = Draft(id=draft, text=body, until=until)
    asked.service.changed()
    return True


async def send_chat_action(asked: Asked) -> Any:
    chat = asked.chat()
    action = asked.params.text("action")
    if action not in _ACTIONS.split():
        raise bad_request("wrong parameter action in request")
    given = asked.params.given("message_thread_id")
    thread = thread_of(chat, asked.params.whole("message_thread_id") if given else None)
    chat.actions.append(ChatAction(at=asked.service.now(), action=action, thread=thread))
    asked.service.changed()
    return True


METHODS: Mapping[str, Method] = {
    "sendMessage": send_message,
    "sendMessageDraft": send_message_draft,
    "sendChatAction": send_chat_action,
}
