"""Conversations, messages, channels, files and approvals, read through the bridge."""

import base64
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.form import FieldKind, Form, FormField
from gateway.domain.ids import ChatType, Place
from mcp_host.bridge.rendering import MAX_CONTENT
from store.codec import form_to_json
from tests.mcp_host.bridge.bridging import Caller
from tests.store.rows import Rows
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

KEY = "agent:main:telegram:dm:100"


def dm(number: int) -> Place:
    return Place(platform="telegram", chat=str(number), chat_type=ChatType.DM)


async def pages(caller: Caller, tool: str, name: str, **arguments: object) -> list[dict[str, Any]]:
    """Return the rows of every page of a list."""
    found: list[dict[str, Any]] = []
    given = dict(arguments)
    while True:
        answer = await caller.ok(tool, **given)
        assert answer["count"] == len(answer[name])
        found += answer[name]
        if "next" not in answer:
            return found
        given["before"] = answer["next"]


@requirement("bridge.lists_bounded")
@pytest.mark.parametrize(
    ("limit", "counted"), [(None, 50), (0, 1), (-5, 1), (7, 7), (200, 200), (100_000, 200)]
)
async def test_a_list_keeps_its_default_and_its_bounds(
    caller: Caller, rows: Rows, limit: int | None, counted: int
) -> None:
    conversation = 0
    for number in range(205):
        conversation = rows.conversation(dm(number))
        rows.channel(f"c{number}", str(number), platform="telegram")
    messages = [rows.message(conversation, str(number)) for number in range(205)]
    rows.update("session", 205, message_count=205)
    given = {"limit": limit}

    conversations = await caller.ok("conversations_list", **given)
    channels = await caller.ok("channels_list", **given)
    read = await caller.ok("messages_read", session_key="agent:main:telegram:dm:204", **given)

    assert [conversations["count"], channels["count"], read["count"]] == [counted] * 3
    assert len(read["messages"]) == counted
    assert read["messages"][-1]["id"] == str(messages[-1])


@requirement("bridge.lists_bounded")
async def test_paging_returns_each_row_once_also_among_equal_times_and_names(
    caller: Caller, rows: Rows
) -> None:
    for number in range(23):
        # Many share a time, as many share a name.
        rows.conversation(dm(number), last_at=number // 5)
        rows.channel(f"name {number // 5}", str(number), platform="telegram")
    conversation = rows.conversation(dm(99), last_at=100)
    written = [str(rows.message(conversation, str(n), created_at=7)) for n in range(23)]

    conversations = await pages(caller, "conversations_list", "conversations", limit=4)
    channels = await pages(caller, "channels_list", "channels", limit=4)

    assert sorted(row["session_key"] for row in conversations) == sorted(
        dm(n).session_key for n in (*range(23), 99)
    )
    assert sorted(row["target"] for row in channels) == sorted(f"telegram:{n}" for n in range(23))
    back: list[str] = []
    page = await caller.ok("messages_read", session_key=dm(99).session_key, limit=4)
    while True:
        back = [message["id"] for message in page["messages"]] + back
        if "next" not in page:
            break
        page = await caller.ok(
            "messages_read", session_key=dm(99).session_key, limit=4, before_id=page["next"]
        )
    assert back == written


@requirement("bridge.lists_bounded")
async def test_a_channel_that_is_gone_between_two_pages_leaves_none_out(
    caller: Caller, rows: Rows
) -> None:
    ids = [rows.channel(f"c{number}", str(number), platform="telegram") for number in range(6)]
    first = await caller.ok("channels_list", limit=3)

    rows.update("directory", ids[2], gone_at=1)
    second = await caller.ok("channels_list", limit=3, before=first["next"])

    assert [row["name"] for row in second["channels"]] == ["c3", "c4", "c5"]


@requirement("bridge.conversations")
async def test_conversations_come_newest_first_and_can_be_filtered(
    caller: Caller, rows: Rows
) -> None:
    for number, (platform, name) in enumerate(
        [("telegram", "Ada"), ("slack", "Ops"), ("telegram", "Ben")]
    ):
        place = Place(platform=platform, chat=str(number), chat_type=ChatType.DM)
        rows.conversation(place, display_name=name, search_text=f"{name} x".casefold())

    async def names(**given: object) -> list[str]:
        answer = await caller.ok("conversations_list", **given)
        return [row["display_name"] for row in answer["conversations"]]

    assert await names() == ["Ben", "Ops", "Ada"]
    assert await names(platform="telegram") == ["Ben", "Ada"]
    assert await names(search="oPS") == ["Ops"]
    assert await names(platform="discord") == []


@requirement("bridge.conversations")
async def test_a_conversation_has_its_ids_counts_tokens_and_last_words(
    caller: Caller, rows: Rows
) -> None:
    topic = Place(platform="telegram", chat="-5", chat_type=ChatType.TOPIC, thread="7")
    conversation = rows.conversation(topic, display_name="Ops", chat_title="The office")
    rows.update("session", 1, message_count=2, input_tokens=30, output_tokens=4)
    message = rows.message(conversation, "x" * 300, role="note", created_at=1_000)

    found = await caller.ok("conversation_get", session_key=topic.session_key)

    assert found["last_message"] == {
        "id": str(message),
        "role": "assistant",
        "content": "x" * 200,
        "timestamp": 1_000,
    }
    assert (found["chat_id"], found["thread_id"], found["chat_name"]) == ("-5", "7", "The office")
    assert (found["message_count"], found["total_tokens"]) == (2, 34)
    assert (found["session_id"], found["chat_type"]) == ("1", "topic")
    said = await caller.failure("conversation_get", session_key="agent:main:telegram:dm:1")
    assert said["code"] == "not_found"


@requirement("bridge.messages_read")
async def test_messages_are_the_newest_in_their_order_and_bounds_are_kept(
    caller: Caller, rows: Rows
) -> None:
    conversation = rows.conversation()
    ids = [str(rows.message(conversation, f"m{n}")) for n in range(6)]

    async def read(**given: object) -> tuple[list[str], str | None]:
        answer = await caller.ok("messages_read", session_key=KEY, **given)
        return [message["id"] for message in answer["messages"]], answer.get("next")

    assert await read(limit=2) == (ids[4:], ids[4])
    assert await read(limit=2, before_id=ids[4]) == (ids[2:4], ids[2])
    assert await read(limit=2, before_id=ids[2]) == (ids[:2], None)
    assert await read(limit=2, after_id=ids[0]) == (ids[1:3], ids[2])
    assert await read(limit=9, after_id=ids[1], before_id=ids[4]) == (ids[2:4], None)


@requirement("bridge.messages_read")
async def test_a_bound_in_an_earlier_session_reads_that_session(caller: Caller, rows: Rows) -> None:
    conversation = rows.conversation()
    old = [str(rows.message(conversation, f"old {n}")) for n in range(3)]
    rows.update("session", 1, message_count=3)
    rows.update("conversation", conversation, current_session_id=rows.session(conversation))
    rows.message(conversation, "new")
    other = rows.message(rows.conversation(dm(200)))

    now = await caller.ok("messages_read", session_key=KEY)
    before = await caller.ok("messages_read", session_key=KEY, before_id=old[2])
    foreign = await caller.failure("messages_read", session_key=KEY, before_id=str(other))

    assert [message["content"] for message in now["messages"]] == ["new"]
    assert [message["content"] for message in before["messages"]] == ["old 0", "old 1"]
    assert before["total_in_session"] == 3
    assert foreign["code"] == "not_found"


@requirement("bridge.messages_read", "case.sv15")
async def test_only_what_was_said_is_read_and_long_texts_are_cut(
    caller: Caller, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.message(conversation, "run it")
    turn = rows.insert(
        "turn",
        conversation_id=conversation,
        session_id=1,
        requester="telegram:7",
        state="done",
        fence=1,
        started_at=0,
    )
    rows.insert(
        "step",
        turn_id=turn,
        n=1,
        kind="tool",
        server="box",
        tool="dump",
        args="{}",
        args_sha="x",
        idem_key="1:1",
        state="ok",
        result='{"text":"TOOL OUTPUT"}',
        planned_at=0,
    )
    rows.message(conversation, "a summary", role="summary")
    rows.message(conversation, "é" * (MAX_CONTENT + 1), role="assistant")
    rows.message(conversation, "posted", role="note")

    read = await caller.ok("messages_read", session_key=KEY)

    assert [(message["role"], message["truncated"]) for message in read["messages"]] == [
        ("user", False),
        ("assistant", True),
        ("assistant", False),
    ]
    assert read["messages"][1]["content"] == "é" * MAX_CONTENT
    assert "TOOL OUTPUT" not in str(read)


@requirement("bridge.attachments_fetch")
async def test_files_are_listed_and_their_bytes_come_only_when_asked_for(
    caller: Caller, rows: Rows, tmp_path: Path
) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation)
    kept = {"message_id": message, "state": "stored", "created_at": 0}
    rows.insert("attachment", kind="image", name="a.png", path_key="in-1.png", size=3, **kept)
    rows.insert("attachment", kind="file", name="gone.txt", path_key="in-2.txt", **kept)
    late = {**kept, "state": "refused", "error": "it is too large"}
    rows.insert("attachment", kind="video", name="v.mp4", size=9, **late)
    (tmp_path / "media" / "in-1.png").write_bytes(b"png")

    asked = {"session_key": KEY, "message_id": str(message)}
    plain = await caller.ok("attachments_fetch", **asked)
    whole = await caller.ok("attachments_fetch", include_data=True, **asked)

    assert plain["count"] == 3
    picture, _, refused = plain["attachments"]
    assert (picture["type"], picture["name"], picture["size"]) == ("image", "a.png", 3)
    assert picture["path"] == str(tmp_path / "media" / "in-1.png")
    assert not any("data" in item for item in plain["attachments"])
    assert refused["error"] == "it is too large"
    assert "path" not in refused
    assert base64.b64decode(whole["attachments"][0]["data"]) == b"png"
    assert "data" not in whole["attachments"][1]
    assert whole["attachments"][1]["error"]


@requirement("bridge.attachments_fetch")
async def test_a_message_of_another_conversation_has_no_files_here(
    caller: Caller, rows: Rows
) -> None:
    rows.conversation()
    other = rows.message(rows.conversation(dm(200)))

    for identifier in (str(other), "999"):
        said = await caller.failure("attachments_fetch", session_key=KEY, message_id=identifier)
        assert said["code"] == "not_found"


@requirement("bridge.permissions_open")
async def test_open_approvals_are_listed_as_their_cards_show_them(
    caller: Caller, rows: Rows
) -> None:
    conversation = rows.conversation()
    asked = rows.question(conversation, args='{"password":"hunter","to":"ada"}')
    sure = FormField(name="ok", kind=FieldKind.BOOLEAN, label="Sure?")
    form = form_to_json(Form(message="Book it?", fields=(sure,)))
    rows.question(conversation, kind="elicitation", form=form, args=None)
    rows.question(conversation, kind="choice")
    rows.question(conversation, state="denied", decision="deny", decided_at=1)
    rows.question(conversation, expires_at=1)

    found = await caller.ok("permissions_list_open")

    call, elicited = found["approvals"]
    assert found["count"] == 2
    assert (call["id"], call["kind"], call["tool"]) == (asked, "tool_call", "add")
    assert call["arguments"] == {"password": "•••• (6 chars)", "to": "ada"}
    assert call["actions"] == ["allow-once", "deny"]
    assert (call["requested_by"], call["session_key"]) == ("telegram:7", KEY)
    assert elicited["message"] == "Book it?"
    assert elicited["schema"]["properties"]["ok"] == {"title": "Sure?", "type": "boolean"}


async def test_half_a_character_in_arguments_ends_no_connection(caller: Caller, rows: Rows) -> None:
    rows.question(rows.conversation(), args=r'{"text":"a\ud800b"}')

    found = await caller.ok("permissions_list_open")

    assert found["approvals"][0]["arguments"] == {"text": "a\ufffdb"}
