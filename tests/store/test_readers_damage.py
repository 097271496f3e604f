"""Rows that hold bytes which are no UTF-8, or JSON that is none, as a dying disk leaves them."""

import logging

import pytest

from gateway.domain.ids import ConversationId, Cursor, QuestionId, SessionId
from gateway.domain.question import ApproverPolicy, Approvers, Question
from store.codec import event_to_json
from store.readers import OpenReaders
from tests.store.rows import Rows
from tests.store.samples import command
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

LOST = "\ufffd"


def damage(rows: Rows, table: str, *columns: str, rowid: int) -> None:
    """Put two bytes that no UTF-8 text holds into text columns of a row."""
    for column in columns:
        # The table and column names are the test's own.
        statement = f"UPDATE {table} SET {column} = CAST(x'61ff' AS TEXT) WHERE rowid = ?"  # noqa: S608
        rows.connection.execute(statement, (rowid,))


@requirement("case.db7")
async def test_a_message_that_is_no_utf8_degrades_alone(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    whole, broken = rows.message(conversation, "whole"), rows.message(conversation)
    rows.event("message", conversation, message_id=whole)
    rows.event("message", conversation, message_id=broken)
    damage(rows, "message", "body", "author_name", rowid=broken)

    messages = await readers.ports.conversations.messages(SessionId(1), limit=9)
    history = await readers.ports.conversations.history(SessionId(1), limit=9)
    page = await readers.ports.conversations.page(limit=9)
    events = await readers.ports.events.after(Cursor(1), limit=9)

    expected = [("whole", False), (f"a{LOST}", True)]
    assert [(message.text, message.degraded) for message in messages] == expected
    assert [(message.text, message.degraded) for message in history] == expected
    (listed,) = page.conversations
    assert listed.last_message is not None
    assert (listed.last_message.text, listed.last_message.degraded) == expected[1]
    assert [getattr(event.fact, "text", None) for event in events.events] == ["whole", f"a{LOST}"]


@requirement("case.db7")
async def test_every_other_list_works_around_a_row_that_is_no_utf8(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.update("session", 1, title="t")
    damage(rows, "session", "title", rowid=1)
    damage(rows, "conversation", "display_name", "user_name", "search_text", rowid=conversation)
    damage(rows, "chat", "title", rowid=1)
    rows.question(conversation)
    rows.question(conversation)
    damage(
        rows, "question", "requester", "approvers", "actions", "server", "args", "form", "body",
        rowid=1,
    )  # fmt: skip
    rows.delivery(conversation, state="uncertain", group_key="g")
    damage(rows, "delivery", "body", "payload", "last_error", rowid=1)
    rows.channel("#one", "C1")
    rows.channel("#two", "C2")
    damage(rows, "directory", "name", "name_folded", "parent_name", rowid=1)
    rows.insert("audit", at=0, actor="a", surface="cli", action="x", subject="s", detail="{}")
    damage(rows, "audit", "action", "detail", rowid=1)
    ports = readers.ports

    assert len((await ports.conversations.page(limit=9)).conversations) == 1
    assert len(await ports.conversations.sessions(ConversationId(conversation), limit=9)) == 1
    assert len(await ports.questions.pending()) == 2
    assert len(await ports.questions.open(limit=9)) == 2
    assert len(await ports.questions.page(limit=9)) == 2
    assert len(await ports.deliveries.group("g")) == 1
    assert [item.body for item in await ports.deliveries.unsure("telegram", "")] == [f"a{LOST}"]
    assert [item.name for item in await ports.channels.page(limit=9)] == [f"a{LOST}", "#two"]
    assert [line.action for line in await ports.books.audit(limit=9)] == [f"a{LOST}"]


@requirement("case.db7")
async def test_a_damaged_question_leaves_nothing_open_that_it_guarded(
    readers: OpenReaders, rows: Rows
) -> None:
    question = rows.question(rows.conversation())
    damage(rows, "question", "approvers", "actions", rowid=1)

    found = await readers.ports.questions.find(QuestionId(question))

    assert isinstance(found, Question)
    assert found.approvers == Approvers(policy=ApproverPolicy.ADMINS)
    assert found.actions == ()


async def test_a_row_that_cannot_be_a_value_is_left_out_and_logged(
    readers: OpenReaders, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = rows.conversation()
    damaged = rows.inbound(conversation, event_to_json(command("stop")))
    good = rows.inbound(conversation, event_to_json(command("help")))
    damage(rows, "inbound", "payload", rowid=damaged)

    with caplog.at_level(logging.WARNING):
        found = await readers.ports.inbox.controls()

    assert [item.id for item in found] == [good]
    assert f"inbound {damaged} is damaged" in caplog.text


async def test_a_time_beyond_the_calendar_costs_its_row_alone(
    readers: OpenReaders, rows: Rows
) -> None:
    rows.conversation(created_at=2**62)

    assert (await readers.ports.conversations.page(limit=9)).conversations == ()
