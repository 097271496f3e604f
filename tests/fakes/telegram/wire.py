"""Renders what is stored as the objects of the Bot API."""

from typing import Any, Final

from tests.fakes.telegram.state import GENERAL_TOPIC, Bot, Chat, Json, Message, Person, World

GROUP_BOT: Final[Json] = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
"""Stands for every anonymous admin, so that old programs find a sender."""
CHANNEL_BOT: Final[Json] = {
    "id": 136817688,
    "is_bot": True,
    "first_name": "Channel",
    "username": "Channel_Bot",
}
"""Stands for every channel that writes in a group."""


def person(who: Person) -> Json:
    shown: Json = {"id": who.id, "is_bot": who.is_bot, "first_name": who.first_name}
    if who.username is not None:
        shown["username"] = who.username
    return shown | {"language_code": who.language_code}


def account(bot: Bot) -> Json:
    return {
        "id": bot.id,
        "is_bot": True,
        "first_name": bot.first_name,
        "username": bot.username,
    }


def chat_head(world: World, chat: Chat) -> Json:
    head: Json = {"id": chat.id, "type": chat.kind}
    if chat.kind == "private":
        who = world.people[chat.id]
        head["first_name"] = who.first_name
        return head if who.username is None else head | {"username": who.username}
    head["title"] = chat.title
    if chat.username is not None:
        head["username"] = chat.username
    return head | {"is_forum": True} if chat.forum else head


def message(world: World, bot: Bot, chat: Chat, shown: Message, *, nested: bool = True) -> Json:
    """Render a message; what it replies to is shown one level deep."""
    body: Json = {
        "message_id": shown.id,
        "date": shown.date,
        "chat": chat_head(world, chat),
        **_sender(world, bot, chat, shown),
        **_content(shown),
        **_thread(chat, shown),
        **shown.notice,
    }
    if shown.edit_date is not None:
        body["edit_date"] = shown.edit_date
    if shown.protected:
        body["has_protected_content"] = True
    if shown.album is not None:
        body["media_group_id"] = shown.album
    if shown.preview is not None:
        body["link_preview_options"] = shown.preview
    if shown.markup is not None and "inline_keyboard" in shown.markup:
        body["reply_markup"] = shown.markup
    if nested:
        body |= _reply(world, bot, chat, shown)
    return body


def inaccessible(world: World, chat: Chat, message_id: int) -> Json:
    """What is left of a message that was deleted."""
    return {"chat": chat_head(world, chat), "message_id": message_id, "date": 0}


def member(world: World, bot: Bot, user_id: int, status: str) -> Json:
    user = account(bot) if user_id == bot.id else person(world.people[user_id])
    body: Json = {"status": status, "user": user}
    if status == "creator":
        body["is_anonymous"] = False
    elif status == "administrator":
        body |= dict.fromkeys(_ADMIN_RIGHTS.split(), True) | {"is_anonymous": False}
    elif status == "restricted":
        body |= dict.fromkeys(_MEMBER_RIGHTS.split(), False) | {"is_member": True, "until_date": 0}
    elif status == "kicked":
        body["until_date"] = 0
    return body


_ADMIN_RIGHTS: Final = (
    "can_be_edited can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members"
    " can_promote_members can_change_info can_invite_users can_post_stories can_edit_stories"
    " can_delete_stories"
)
_MEMBER_RIGHTS: Final = (
    "can_send_messages can_send_audios can_send_documents can_send_photos can_send_videos"
    " can_send_video_notes can_send_voice_notes can_send_polls can_send_other_messages"
    " can_add_web_page_previews can_change_info can_invite_users can_pin_messages"
    " can_manage_topics can_edit_tag can_react_to_messages"
)


def _sender(world: World, bot: Bot, chat: Chat, shown: Message) -> Json:
    body: Json = {}
    if shown.sender is not None:
        body["from"] = account(bot) if shown.by_bot else person(world.people[shown.sender])
    if shown.sender_chat is not None:
        author = bot.chats.get(shown.sender_chat, chat)
        body["sender_chat"] = chat_head(world, author)
        if shown.stand_in:
            body["from"] = GROUP_BOT if author is chat else CHANNEL_BOT
    return body


def _content(shown: Message) -> Json:
    text, entities = ("caption", "caption_entities") if shown.media else ("text", "entities")
    body: dict[str, Any] = dict(shown.media)
    if shown.text:
        body[text] = shown.text
    if shown.entities:
        body[entities] = shown.entities
    return body


def _thread(chat: Chat, shown: Message) -> Json:
    if shown.thread is None or shown.thread == GENERAL_TOPIC:
        return {}
    body: Json = {"message_thread_id": shown.thread}
    return body | {"is_topic_message": True} if shown.thread in chat.topics else body


def _reply(world: World, bot: Bot, chat: Chat, shown: Message) -> Json:
    # A message of a topic that answers nothing shows the topic's first message as its reply.
    root = shown.thread if shown.thread in chat.topics and shown.thread != shown.id else None
    answered = chat.messages.get(shown.reply_to or root or 0)
    if answered is None or answered.deleted:
        return {}
    body: Json = {"reply_to_message": message(world, bot, chat, answered, nested=False)}
    if shown.quote is not None:
        body["quote"] = {"text": shown.quote, "position": 0, "is_manual": True}
    return body
