from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import Update

from adapters.telegram.buttons import token_in
from adapters.telegram.inbound import Us, event_of, migration_of
from gateway.domain.ids import ChatType
from gateway.domain.message import (
    AttachmentKind,
    CommandGiven,
    InboundEvent,
    InboundMessage,
    MessageEdited,
)
from tests.support.requirement import requirement

US = Us(id=123456, username="GwBot")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANA = {"id": 111, "is_bot": False, "first_name": "Ana", "last_name": "Li"}
PRIVATE = {"id": 111, "type": "private", "first_name": "Ana"}
TEAM = {"id": -1001, "type": "supergroup", "title": "Team"}


def update(message: dict[str, Any], *, kind: str = "message") -> Update:
    whole = {"message_id": 5, "date": 1_700_000_000, "chat": PRIVATE, "from": ANA, **message}
    body = {key: value for key, value in whole.items() if value is not None}
    found = Update.de_json({"update_id": 900, kind: body}, None)
    assert found is not None
    return found


def event(message: dict[str, Any], *, kind: str = "message", us: Us = US) -> InboundEvent | None:
    return event_of(update(message, kind=kind), us, now=NOW)


def message(content: dict[str, Any]) -> InboundMessage:
    found = event(content)
    assert isinstance(found, InboundMessage)
    return found


def test_a_private_message_carries_who_said_what_and_when() -> None:
    found = message({"text": "hello"})

    assert found.place.session_key == "agent:main:telegram:dm:111"
    assert (found.native_id, found.dedupe) == ("5", "telegram:123456:900")
    assert (str(found.sender), found.sender.name) == ("telegram:111", "Ana Li")
    assert (found.text, found.mentions_us) == ("hello", True)
    assert found.sent_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_accounts_have_conversations_and_keys_of_their_own() -> None:
    us = Us(id=123456, username="gwbot", account="work")

    found = event({"text": "hello"}, us=us)

    assert found is not None
    assert found.place.session_key == "agent:main:telegram@work:dm:111"
    assert found.dedupe == "telegram:work:900"


def test_groups_can_share_one_conversation() -> None:
    us = Us(id=123456, username="gwbot", sessions_per_user=False)

    found = event({"text": "hello", "chat": TEAM}, us=us)

    assert found is not None
    assert found.place.session_key == "agent:main:telegram:group:-1001"


@requirement("case.t20")
def test_a_channel_post_is_by_the_channel() -> None:
    chat = {"id": -1009, "type": "channel", "title": "News"}

    found = event({"text": "hello", "chat": chat, "from": None}, kind="channel_post")

    assert isinstance(found, InboundMessage)
    assert found.place.chat_type is ChatType.CHANNEL
    assert (found.sender.id, found.sender.name) == ("-1009", "News")


def test_a_topic_of_a_private_chat_is_a_conversation_of_its_own() -> None:
    found = message({"text": "hi", "message_thread_id": 7, "is_topic_message": True})

    assert found.place.session_key == "agent:main:telegram:topic:111:7"


@requirement("access.mention.default")
@pytest.mark.parametrize(
    ("content", "mentioned"),
    [
        ({"text": "hello"}, False),
        ({"text": "@gwbot hello", "entities": [("mention", 0, 6)]}, True),
        ({"text": "👍 @GWBOT", "entities": [("mention", 3, 6)]}, True),
        ({"text": "@gwbotter hello", "entities": [("mention", 0, 9)]}, False),
        ({"text": "mail@gwbot", "entities": []}, False),
        ({"text": "please /x@gwbot", "entities": [("bot_command", 7, 8)]}, True),
        ({"caption": "@gwbot look", "caption_entities": [("mention", 0, 6)]}, True),
        ({"text": "hi", "reply_to": 123456}, True),
        ({"text": "hi", "reply_to": 111}, False),
    ],
)
def test_in_a_group_a_mention_or_a_reply_is_meant_for_us(
    content: dict[str, Any], mentioned: bool
) -> None:
    body: dict[str, Any] = {"chat": TEAM, **content}
    for key in ("entities", "caption_entities"):
        if key in body:
            body[key] = [{"type": k, "offset": o, "length": n} for k, o, n in body[key]]
    if "caption" in body:
        body["document"] = {"file_id": "f", "file_unique_id": "u"}
    if "reply_to" in body:
        sender = {"id": body.pop("reply_to"), "is_bot": True, "first_name": "x"}
        replied = {"message_id": 2, "date": 1, "chat": TEAM, "from": sender, "text": "t"}
        body["reply_to_message"] = replied

    assert message(body).mentions_us is mentioned


def test_a_mention_without_a_name_is_one_by_id() -> None:
    user = {"id": 123456, "is_bot": True, "first_name": "Bot"}
    entities = [{"type": "text_mention", "offset": 0, "length": 3, "user": user}]

    assert message({"chat": TEAM, "text": "Bot hi", "entities": entities}).mentions_us


def test_the_message_that_opened_a_topic_is_no_reply() -> None:
    created = {"name": "Plans", "icon_color": 1}
    opened = {"message_id": 2, "date": 1, "chat": TEAM, "forum_topic_created": created}
    body = {"chat": {**TEAM, "is_forum": True}, "text": "hi", "message_thread_id": 2,
            "is_topic_message": True, "reply_to_message": opened}  # fmt: skip

    assert message(body).reply_to is None


@requirement("case.t23", "command.telegram_names")
@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/help", "help", ""),
        ("/New@gwbot", "new", ""),
        ("/reload_mcp notes", "reload-mcp", "notes"),
        ("/reload-mcp", "reload-mcp", ""),
        ('/call demo__add {"a":\n1}', "call", 'demo__add {"a":\n1}'),
    ],
)
def test_commands_are_read_in_both_spellings(text: str, name: str, argument: str) -> None:
    found = event({"text": text, "chat": TEAM})

    assert isinstance(found, CommandGiven)
    assert (found.name, found.argument) == (name, argument)


@pytest.mark.parametrize("text", ["/", "/usr/bin is full", "/ help", "/12"])
def test_what_only_looks_like_a_command_is_a_message(text: str) -> None:
    assert message({"text": text}).text == text


def test_a_command_for_another_bot_is_nothing() -> None:
    assert event({"text": "/new@otherbot", "chat": TEAM}) is None


def test_our_own_messages_and_service_messages_are_nothing() -> None:
    assert event({"text": "me", "from": {"id": 123456, "is_bot": True, "first_name": "x"}}) is None
    assert event({"new_chat_title": "New", "chat": TEAM}) is None


def test_another_bot_is_told_as_one() -> None:
    bot = {"id": 99, "is_bot": True, "first_name": "Other"}

    assert message({"text": "beep", "from": bot}).sender.is_bot


@requirement("fault.f27")
def test_an_edit_names_what_it_changes() -> None:
    found = event({"text": "now", "edit_date": 1_700_000_100}, kind="edited_message")

    assert isinstance(found, MessageEdited)
    assert (found.edited, found.text) == ("5", "now")
    assert found.native_id != "5"


FILE = {"file_id": "f1", "file_unique_id": "u1", "file_size": 9}


@requirement("platform.telegram.attachments")
@pytest.mark.parametrize(
    ("content", "kind", "media_type", "name"),
    [
        ({"document": {**FILE, "file_name": "a.txt", "mime_type": "text/plain"}},
         AttachmentKind.FILE, "text/plain", "a.txt"),
        ({"document": {**FILE, "mime_type": "image/png"}},
         AttachmentKind.IMAGE, "image/png", "file-u1"),
        ({"photo": [{**FILE, "file_id": "small", "width": 1, "height": 1},
                    {**FILE, "width": 9, "height": 9}]},
         AttachmentKind.IMAGE, "image/jpeg", "photo-u1.jpg"),
        ({"voice": {**FILE, "duration": 1}}, AttachmentKind.VOICE, "audio/ogg", "voice-u1.ogg"),
        ({"audio": {**FILE, "duration": 1, "file_name": "s.mp3"}},
         AttachmentKind.AUDIO, "audio/mpeg", "s.mp3"),
        ({"video": {**FILE, "width": 1, "height": 1, "duration": 1}},
         AttachmentKind.VIDEO, "video/mp4", "video-u1.mp4"),
        ({"video_note": {**FILE, "length": 1, "duration": 1}},
         AttachmentKind.VIDEO, "video/mp4", "video-u1.mp4"),
        ({"animation": {**FILE, "width": 1, "height": 1, "duration": 1},
          "document": {**FILE, "file_name": "x.gif"}},
         AttachmentKind.VIDEO, "video/mp4", "video-u1.mp4"),
    ],
)  # fmt: skip
def test_files_are_told_by_kind_name_and_size(
    content: dict[str, Any], kind: AttachmentKind, media_type: str, name: str
) -> None:
    found = message({**content, "caption": "look"})

    (attachment,) = found.attachments
    assert found.text == "look"
    assert (attachment.kind, attachment.media_type, attachment.name) == (kind, media_type, name)
    assert (attachment.size, attachment.ref) == (9, "f1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[location: 52.5, 13.4]"),
        ({"contact": {"phone_number": "+1", "first_name": "Bo"}}, "[contact: Bo, +1]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲 4]"),
    ],
)
def test_what_is_neither_text_nor_file_is_put_into_words(
    content: dict[str, Any], words: str
) -> None:
    assert message(content).text == words


@requirement("fault.f23")
def test_both_sides_of_a_move_tell_of_it() -> None:
    old = update({"chat": {"id": -5, "type": "group", "title": "T"}, "migrate_to_chat_id": -1005})
    new = update({"chat": {**TEAM, "id": -1005}, "migrate_from_chat_id": -5})

    assert migration_of(old) == migration_of(new)
    assert migration_of(old) is not None
    assert event_of(old, US, now=NOW) is None


@requirement("threat.s2")
@given(st.text(max_size=64))
def test_only_data_of_our_own_making_has_a_token(data: str) -> None:
    token = token_in(data)

    assert token == "" or (len(token) == 22 and data == f"v1:{token}")
