import asyncio

import pytest

from gateway.domain.events import Gap, MessageStored, QuestionAsked, QuestionSettled
from gateway.domain.ids import Actor, ChatType, Cursor, MessageId, Place, QuestionId
from gateway.domain.question import Action, QuestionKind, QuestionState, Surface
from store.codec import from_ms
from store.readers import POLL_SECONDS, OpenReaders
from tests.store.rows import Rows
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio

OTHER = Place(platform="telegram", chat="200", chat_type=ChatType.DM)


async def test_an_empty_stream_has_a_head_that_is_not_zero(readers: OpenReaders) -> None:
    events = readers.ports.events

    page = await events.after(Cursor(0), limit=10)

    assert await events.head() == 1
    assert (page.events, page.next, page.gap) == ((), 1, None)


async def test_a_message_is_told_with_its_words_author_and_number_of_files(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation, "hi")
    rows.insert("attachment", message_id=message, kind="file", state="stored", created_at=0)
    cursor = rows.event("message", conversation, message_id=message)

    page = await readers.ports.events.after(Cursor(1), limit=10)

    (event,) = page.events
    assert event.cursor == page.next == cursor
    assert event.session_key == "agent:main:telegram:dm:100"
    assert event.fact == MessageStored(
        message=MessageId(message),
        role="user",
        author=Actor(platform="telegram", id="7", name="Ada"),
        text="hi",
        attachments=1,
    )


async def test_the_words_of_a_deleted_message_are_not_told(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation, "secret", deleted_at=5)
    rows.event("message", conversation, message_id=message)

    page = await readers.ports.events.after(Cursor(1), limit=10)

    assert [getattr(event.fact, "text", None) for event in page.events] == [""]


async def test_a_question_is_told_when_it_is_asked_and_when_it_is_settled(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    question = rows.question(
        conversation,
        state="denied",
        decision="deny",
        decided_by="slack:U1",
        decided_via="button",
        decided_at=9,
        expires_at=70,
    )
    rows.event("approval_requested", conversation, question_id=question)
    rows.event("approval_resolved", conversation, question_id=question)

    page = await readers.ports.events.after(Cursor(1), limit=10)

    asked, settled = (event.fact for event in page.events)
    assert asked == QuestionAsked(
        question=QuestionId(question),
        kind=QuestionKind.TOOL_CALL,
        server="demo",
        tool="add",
        requester=Actor(platform="telegram", id="7"),
        expires_at=from_ms(70),
    )
    assert settled == QuestionSettled(
        question=QuestionId(question),
        kind=QuestionKind.TOOL_CALL,
        state=QuestionState.DENIED,
        action=Action.DENY,
        by=Actor(platform="slack", id="U1"),
        via=Surface.BUTTON,
    )


async def test_pages_follow_each_other_without_loss_or_repeat(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    written = [
        rows.event("message", conversation, message_id=rows.message(conversation)) for _ in range(7)
    ]

    cursor, seen = Cursor(0), list[int]()
    while (page := await readers.ports.events.after(cursor, limit=3)).events:
        seen += [event.cursor for event in page.events]
        cursor = page.next

    assert seen == written
    assert page.next == written[-1]


async def test_a_filter_moves_the_cursor_past_what_it_left_out(
    readers: OpenReaders, rows: Rows
) -> None:
    mine, other = rows.conversation(), rows.conversation(OTHER)
    first = rows.event("message", mine, message_id=rows.message(mine))
    last = rows.event("message", other, message_id=rows.message(other))
    key = "agent:main:telegram:dm:100"

    page = await readers.ports.events.after(Cursor(1), session_key=key, limit=10)
    behind = await readers.ports.events.after(page.next, session_key=key, limit=10)
    unknown = await readers.ports.events.after(Cursor(1), session_key="nobody", limit=10)

    assert [event.cursor for event in page.events] == [first]
    assert (behind.events, behind.next) == ((), last)
    assert (unknown.events, unknown.next) == ((), last)


async def test_a_key_from_before_the_chat_migrated_still_filters(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.insert("conversation_alias", session_key="old", conversation_id=conversation)
    cursor = rows.event("message", conversation, message_id=rows.message(conversation))

    page = await readers.ports.events.after(Cursor(1), session_key="old", limit=10)

    assert [event.cursor for event in page.events] == [cursor]


async def test_pruned_history_is_a_gap_and_reading_goes_on_behind_it(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    cursors = [
        rows.event("message", conversation, message_id=rows.message(conversation)) for _ in range(3)
    ]
    rows.connection.execute("DELETE FROM event WHERE id <= ?", (cursors[1],))
    rows.connection.execute(
        "UPDATE meta SET value = ? WHERE key = 'events_pruned_to'", (str(cursors[1]),)
    )

    page = await readers.ports.events.after(Cursor(cursors[0]), limit=10)
    level = await readers.ports.events.after(Cursor(cursors[1]), limit=10)

    assert page.gap == Gap(after=Cursor(cursors[0]), next=Cursor(cursors[1]), reason="pruned")
    assert [event.cursor for event in page.events] == cursors[2:]
    assert level.gap is None
    assert [event.cursor for event in level.events] == cursors[2:]


async def test_a_cursor_from_the_future_is_reset_to_the_head(readers: OpenReaders) -> None:
    page = await readers.ports.events.after(Cursor(99), limit=10)

    assert page.gap == Gap(after=Cursor(99), next=Cursor(1), reason="reset")
    assert page.next == 1


async def test_a_restore_is_a_gap_only_for_who_saw_what_was_rewound(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    kept = rows.event("message", conversation, message_id=rows.message(conversation))
    restored = 1 << 40
    rows.insert("event", id=restored, kind="start", at=0)
    new = rows.event("message", conversation, message_id=rows.message(conversation))

    level = await readers.ports.events.after(Cursor(kept), limit=10)
    ahead = await readers.ports.events.after(Cursor(kept + 5), limit=10)

    assert level.gap is None
    assert ahead.gap == Gap(after=Cursor(kept + 5), next=Cursor(restored), reason="reset")
    assert [event.cursor for event in level.events] == [new]
    assert [event.cursor for event in ahead.events] == [new]


async def test_many_waiters_wake_when_an_event_is_committed(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    head = await readers.ports.events.head()
    events = readers.ports.events

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        for number in range(40):
            tasks.create_task(events.wait(head), name=f"waiter:{number}")
        await asyncio.sleep(0)
        rows.event("message", conversation, message_id=rows.message(conversation))
        readers.notify()


async def test_a_waiter_of_one_conversation_sleeps_through_the_others(
    readers: OpenReaders, rows: Rows
) -> None:
    mine, other = rows.conversation(), rows.conversation(OTHER)
    events = readers.ports.events
    woken: list[str] = []

    async def wait(key: str) -> None:
        await events.wait(Cursor(1), session_key=key)
        woken.append(key)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(wait("agent:main:telegram:dm:100"), name="mine")
        second = tasks.create_task(wait(OTHER.session_key), name="other")
        rows.event("message", other, message_id=rows.message(other))
        readers.notify()
        await second
        first_woken = list(woken)
        rows.event("message", mine, message_id=rows.message(mine))
        readers.notify()

    assert first_woken == [OTHER.session_key]
    assert len(woken) == 2


async def test_a_lost_hint_costs_a_waiter_one_poll(
    readers: OpenReaders, rows: Rows, clock: ManualClock
) -> None:
    conversation = rows.conversation()

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(readers.ports.events.wait(Cursor(1)), name="waiter")
        rows.event("message", conversation, message_id=rows.message(conversation))
        while not waiter.done():
            clock.advance(POLL_SECONDS)
            await asyncio.sleep(0)


async def test_a_gap_ends_a_wait(readers: OpenReaders, rows: Rows) -> None:
    async with asyncio.timeout(5):
        await readers.ports.events.wait(Cursor(99))
        rows.insert("event", id=1 << 40, kind="start", at=0)
        await readers.ports.events.wait(Cursor(50))
        rows.connection.execute("UPDATE meta SET value = '9' WHERE key = 'events_pruned_to'")
        await readers.ports.events.wait(Cursor(8))


async def test_a_cancelled_waiter_leaves_no_connection_behind(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    events = readers.ports.events

    for turns in range(30):
        waiter = asyncio.create_task(events.wait(Cursor(1)), name="waiter")
        for _ in range(turns):
            await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter])
    rows.event("message", conversation, message_id=rows.message(conversation))

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        for number in range(10):
            tasks.create_task(events.wait(Cursor(1)), name=f"waiter:{number}")
