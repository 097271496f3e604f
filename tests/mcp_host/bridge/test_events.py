"""Following what happens by a cursor: from where, in which order, and what is said when some is gone."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.domain.events import EventPage
from gateway.domain.ids import ChatType, Cursor, Place
from gateway.ports import EventReader
from mcp_host.bridge.arguments import EventsPoll
from store.readers import OpenReaders, open_readers
from tests.mcp_host.bridge.bridging import Caller, bridge_over, calling
from tests.store.rows import Rows
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

KEY = "agent:main:telegram:dm:100"
OTHER = Place(platform="telegram", chat="200", chat_type=ChatType.DM)


def said(rows: Rows, conversation: int, text: str, **values: object) -> int:
    """Write a message with its event; return the cursor."""
    return rows.event(
        "message", conversation, message_id=rows.message(conversation, text, **values)
    )


async def texts(caller: Caller, **given: object) -> tuple[list[str], int]:
    """Return what an `events_poll` tells, and where the next one goes on."""
    page = await caller.ok("events_poll", **given)
    return [event.get("content", event["type"]) for event in page["events"]], page["next_cursor"]


@dataclass
class Waits:
    """Implements `EventReader` on another one, and counts who waits."""

    inner: EventReader
    waiting: int = 0

    async def head(self) -> Cursor:
        return await self.inner.head()

    async def after(
        self, cursor: Cursor, *, session_key: str | None = None, limit: int
    ) -> EventPage:
        return await self.inner.after(cursor, session_key=session_key, limit=limit)

    async def wait(self, cursor: Cursor, *, session_key: str | None = None) -> None:
        self.waiting += 1
        try:
            await self.inner.wait(cursor, session_key=session_key)
        finally:
            self.waiting -= 1


@requirement("bridge.events.from_zero")
async def test_zero_is_the_moment_the_bridge_began_and_replay_is_everything(
    readers: OpenReaders, rows: Rows, tmp_path: Path
) -> None:
    conversation = rows.conversation()
    said(rows, conversation, "before")
    async with calling(bridge_over(readers, tmp_path)) as caller:
        last = said(rows, conversation, "since")

        assert await texts(caller) == (["since"], last)
        assert await texts(caller, after_cursor=0) == (["since"], last)
        assert await texts(caller, replay=True) == (["before", "since"], last)
        first = await caller.ok("events_wait", replay=True, timeout_ms=0)
        assert first["event"]["content"] == "before"
        assert (await caller.ok("events_wait"))["event"]["content"] == "since"


@requirement("bridge.events.cursor_never_zero")
async def test_no_cursor_is_ever_zero_also_without_a_store(tmp_path: Path) -> None:
    async with (
        open_readers(tmp_path / "state.db", clock=ManualClock(), late=True) as nothing,
        calling(bridge_over(nothing, tmp_path)) as caller,
    ):
        polled = await caller.ok("events_poll")
        replayed = await caller.ok("events_poll", replay=True)
        waited = await caller.ok("events_wait", timeout_ms=0)
        filtered = await caller.ok("events_poll", session_key=KEY)

    assert {answer["next_cursor"] for answer in (polled, replayed, waited, filtered)} == {1}
    assert (waited["event"], waited["reason"]) == (None, "timeout")


@requirement("bridge.events.cursor_never_zero")
async def test_no_cursor_of_a_fresh_store_is_zero(caller: Caller) -> None:
    assert (await caller.ok("events_poll"))["next_cursor"] == 1
    assert (await caller.ok("events_poll", after_cursor=1))["next_cursor"] == 1
    assert (await caller.ok("events_wait", timeout_ms=1))["next_cursor"] == 1


@requirement("bridge.events.wait")
async def test_a_wait_holds_up_no_other_call_and_returns_what_comes(
    caller: Caller, readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    waiting = [asyncio.create_task(caller.ok("events_wait")) for _ in range(3)]

    # Answered while three wait.
    assert (await caller.ok("conversations_list"))["count"] == 1
    cursor = said(rows, conversation, "now")
    readers.notify()
    answers = await asyncio.gather(*waiting)

    assert [answer["event"]["content"] for answer in answers] == ["now"] * 3
    assert {answer["next_cursor"] for answer in answers} == {cursor}


@requirement("bridge.events.wait")
async def test_a_wait_for_one_conversation_does_not_end_for_another(
    caller: Caller, readers: OpenReaders, rows: Rows
) -> None:
    conversation, other = rows.conversation(), rows.conversation(OTHER)
    waiting = asyncio.create_task(caller.ok("events_wait", session_key=KEY))
    await caller.ok("events_poll")

    foreign = said(rows, other, "not this")
    readers.notify()
    assert (await caller.ok("events_poll", session_key=KEY))["next_cursor"] == foreign
    assert not waiting.done()
    said(rows, conversation, "this")
    readers.notify()

    assert (await waiting)["event"]["content"] == "this"


@requirement("bridge.events.wait")
async def test_a_wait_that_is_over_says_so_and_where_it_came_to(caller: Caller, rows: Rows) -> None:
    cursor = said(rows, rows.conversation(OTHER), "elsewhere")

    answer = await caller.ok("events_wait", session_key=KEY, timeout_ms=1)

    assert answer == {"event": None, "reason": "timeout", "next_cursor": cursor}


@requirement("bridge.events.wait")
async def test_a_wait_that_is_cancelled_or_over_leaves_no_waiter(
    readers: OpenReaders, rows: Rows, tmp_path: Path
) -> None:
    rows.conversation()
    waits = Waits(readers.ports.events)
    async with calling(bridge_over(readers, tmp_path, events=waits)) as caller:
        await caller.ok("events_wait", timeout_ms=1)
        assert waits.waiting == 0
        waiting = [asyncio.create_task(caller.ok("events_wait")) for _ in range(4)]
        await eventually_async(lambda: waits.waiting == 4)

        waiting[0].cancel()
        await eventually_async(lambda: waits.waiting == 3)

    # The client is gone, and its calls with it.
    await eventually_async(lambda: waits.waiting == 0)
    await asyncio.gather(*waiting, return_exceptions=True)


@requirement("case.sv2")
async def test_a_cursor_of_an_earlier_bridge_goes_on_also_between_approvals(
    readers: OpenReaders, rows: Rows, tmp_path: Path
) -> None:
    conversation = rows.conversation()
    async with calling(bridge_over(readers, tmp_path)) as first:
        said(rows, conversation, "one")
        _, cursor = await texts(first)

    for _ in range(3):
        rows.event("approval_requested", conversation, question_id=rows.question(conversation))
    last = said(rows, conversation, "two")

    async with calling(bridge_over(readers, tmp_path)) as second:
        found, next_cursor = await texts(second, after_cursor=cursor)
        assert found == [*["approval_requested"] * 3, "two"]
        assert next_cursor == last
        assert await texts(second, after_cursor=last) == ([], last)


@requirement("case.sv3")
async def test_messages_of_one_moment_or_an_older_one_are_all_told(
    caller: Caller, rows: Rows
) -> None:
    conversation = rows.conversation()
    for text, at in [("a", 5_000), ("b", 5_000), ("older", 1)]:
        said(rows, conversation, text, created_at=at)

    assert (await texts(caller))[0] == ["a", "b", "older"]


@requirement("fault.f44")
async def test_a_cursor_older_than_what_is_kept_is_told_what_is_gone(
    caller: Caller, rows: Rows
) -> None:
    conversation = rows.conversation()
    cursors = [said(rows, conversation, str(n)) for n in range(6)]
    rows.connection.execute("DELETE FROM event WHERE id <= ?", (cursors[2],))
    rows.connection.execute(
        "UPDATE meta SET value = ? WHERE key = 'events_pruned_to'", (str(cursors[2]),)
    )

    page = await caller.ok("events_poll", after_cursor=cursors[0])
    waited = await caller.ok("events_wait", after_cursor=cursors[0])

    gap = {"from": cursors[0], "to": cursors[2], "reason": "pruned"}
    assert (page["gap"], waited["gap"]) == (gap, gap)
    assert [event["content"] for event in page["events"]] == ["3", "4", "5"]
    assert waited["event"]["content"] == "3"
    assert "gap" not in await caller.ok("events_poll", after_cursor=cursors[2])


@requirement("fault.f44")
async def test_a_cursor_from_the_future_is_told_at_once_and_put_right(
    caller: Caller, rows: Rows
) -> None:
    head = said(rows, rows.conversation(), "last")

    for future in (head + 5, 2**63 - 1, 2**200):
        page = await caller.ok("events_poll", after_cursor=future)
        waited = await caller.ok("events_wait", after_cursor=future)
        assert page["gap"]["reason"] == "reset"
        assert page["gap"]["to"] == page["next_cursor"] == head
        assert (waited["event"], waited["next_cursor"], waited["gap"]) == (None, head, page["gap"])


@requirement("fault.f44")
async def test_a_hundred_thousand_events_page_without_a_skip(
    readers: OpenReaders, rows: Rows, tmp_path: Path
) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation, "x")
    rows.connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
        " INSERT INTO event (kind, conversation_id, message_id, at)"
        " SELECT 'message', ?, ?, 0 FROM n",
        (conversation, message),
    )
    following = bridge_over(readers, tmp_path).following

    seen: list[int] = []
    cursor, more = 0, True
    while more:
        page = await following.events_poll(EventsPoll(after_cursor=cursor, limit=200, replay=True))
        assert "gap" not in page
        cursor, more = page["next_cursor"], bool(page["events"])
        seen += [event["cursor"] for event in page["events"]]

    assert seen == list(range(2, 100_002))


async def test_an_event_whose_row_is_damaged_keeps_nobody_from_the_next(
    caller: Caller, readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    waiting = asyncio.create_task(caller.ok("events_wait"))
    await caller.ok("events_poll")

    rows.event("message", conversation, message_id=rows.message(conversation, role="note"))
    rows.connection.execute("PRAGMA ignore_check_constraints = ON")
    rows.connection.execute("UPDATE event SET kind = 'unheard' WHERE kind = 'message'")
    readers.notify()
    said(rows, conversation, "whole")
    readers.notify()

    assert (await waiting)["event"]["content"] == "whole"
