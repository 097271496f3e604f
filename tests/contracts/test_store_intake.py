"""What a store promises about accepting events."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.conversation import ConversationView
from gateway.domain.delivery import Origin
from gateway.domain.events import MessageStored
from gateway.domain.ids import ChatType, Cursor, Place
from gateway.domain.message import Attachment, AttachmentKind, InboundMessage
from gateway.domain.operations.deliveries import Enqueue
from gateway.domain.operations.inbound import Accepted, Duplicate, Lane, MigrateChat
from store import OpenStore
from tests.contracts.conftest import StoreFactory
from tests.contracts.values import (
    ANNA,
    BEN,
    GROUP,
    HOME,
    command,
    commit,
    deleted,
    edited,
    message,
    press,
    sending,
    text,
)
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


async def view(opened: OpenStore, place: Place = HOME) -> ConversationView:
    found = await opened.readers.conversations.find(place.session_key)
    assert found is not None
    return found


async def texts(opened: OpenStore, place: Place = HOME) -> list[str]:
    session = (await view(opened, place)).session
    stored = await opened.readers.conversations.messages(session, limit=200)
    return [item.text for item in stored]


async def test_a_message_is_stored_with_its_conversation_and_its_event(opened: OpenStore) -> None:
    accepted = await opened.store.accept(message("hello"))

    assert isinstance(accepted, Accepted)
    found = await view(opened)
    page = await opened.readers.events.after(Cursor(1), limit=10)
    assert found.place == HOME
    assert found.user_name == "Anna"
    assert found.message_count == 1
    assert found.last_message is not None
    assert found.last_message.id == accepted.message
    assert [event.cursor for event in page.events] == [accepted.cursor]
    fact = page.events[0].fact
    assert isinstance(fact, MessageStored)
    assert (fact.text, fact.author, fact.role) == ("hello", ANNA, "user")


async def test_a_redelivered_message_changes_nothing(opened: OpenStore) -> None:
    await opened.store.accept(message("hello", native_id="5"))
    before = await view(opened)
    head = await opened.readers.events.head()

    again = await opened.store.accept(message("hello", native_id="5"))

    assert again == Duplicate(dedupe="telegram::5")
    assert await view(opened) == before
    assert await opened.readers.events.head() == head


async def test_the_newest_message_of_each_conversation_is_known_by_its_platforms_id(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("hello", native_id="5"))
    await opened.store.accept(message("again", native_id="6"))

    heard = await opened.readers.inbox.last_heard(HOME.platform, HOME.account, limit=5)
    elsewhere = await opened.readers.inbox.last_heard("slack", "", limit=5)

    assert list(heard) == [(HOME, "6")]
    assert not elsewhere


@requirement("case.db13")
async def test_a_message_that_comes_under_two_keys_is_one_row_and_one_input(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("hello", native_id="5", dedupe="telegram::update-1"))

    flushed = await opened.store.accept(
        message("hello", native_id="5", dedupe="telegram::history-5")
    )
    again = await opened.store.accept(message("hello", native_id="5", dedupe="telegram::history-5"))

    assert (flushed, again) == (
        Duplicate(dedupe="telegram::history-5"),
        Duplicate(dedupe="telegram::history-5"),
    )
    assert await texts(opened) == ["hello"]
    assert (await view(opened)).message_count == 1
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    assert len(claim.inputs) == 1


async def test_a_first_message_known_under_another_key_leaves_its_group_whole(
    opened: OpenStore,
) -> None:
    """All in one commit: the refused one must not take its neighbours with it."""
    results = await asyncio.gather(
        opened.store.accept(message("a", native_id="1", dedupe="telegram::u1", place=GROUP)),
        opened.store.accept(message("a", native_id="1", dedupe="telegram::h1", place=GROUP)),
        opened.store.accept(message("b", native_id="2", place=GROUP)),
    )

    assert [type(result) for result in results] == [Accepted, Duplicate, Accepted]
    assert await texts(opened, GROUP) == ["a", "b"]


@requirement("design.events.commit_order")
async def test_event_ids_rise_in_the_order_of_commits_and_a_reader_never_skips_one(
    opened: OpenStore,
) -> None:
    seen: list[int] = []

    async def follow() -> None:
        cursor = Cursor(1)
        while len(seen) < 120:
            page = await opened.readers.events.after(cursor, limit=7)
            seen.extend(event.cursor for event in page.events)
            cursor = page.next
            await asyncio.sleep(0)

    async def write(place: Place) -> list[int]:
        accepted = [await opened.store.accept(message(f"{n}", place=place)) for n in range(30)]
        return [item.cursor or 0 for item in accepted if isinstance(item, Accepted)]

    places = [Place(platform="telegram", chat=f"{n}", chat_type=ChatType.DM) for n in range(4)]
    async with asyncio.timeout(30):
        following = asyncio.create_task(follow(), name="follow")
        written = await asyncio.gather(*(write(place) for place in places))
        await following

    assert all(cursors == sorted(cursors) for cursors in written)
    assert seen == sorted({cursor for cursors in written for cursor in cursors})


async def test_messages_keep_the_order_in_which_they_were_accepted(opened: OpenStore) -> None:
    await asyncio.gather(*(opened.store.accept(message(f"{n}")) for n in range(50)))

    assert await texts(opened) == [f"{n}" for n in range(50)]


async def test_a_command_is_no_message_and_stays_in_the_inbox_until_it_is_done(
    opened: OpenStore,
) -> None:
    accepted = await opened.store.accept(command("status"))
    pressed = await opened.store.accept(press("token"))

    assert isinstance(accepted, Accepted)
    assert isinstance(pressed, Accepted)
    assert (accepted.message, accepted.cursor) == (None, None)
    assert await texts(opened) == []
    waiting = await opened.readers.inbox.controls()
    assert [item.id for item in waiting] == [accepted.inbound, pressed.inbound]
    await opened.store.finish(accepted.inbound)
    await opened.store.finish(accepted.inbound)
    assert [item.id for item in await opened.readers.inbox.controls()] == [pressed.inbound]
    assert await opened.store.claim_turn(worker="w") is None


@requirement("session.new_persists")
async def test_a_new_session_starts_empty_and_the_earlier_one_stays_readable_for_ever(
    open_in: StoreFactory, tmp_path: Path, clock: ManualClock
) -> None:
    async with open_in(tmp_path, clock) as opened:
        await opened.store.accept(message("old"))
        first = (await view(opened)).session
        await asyncio.gather(
            opened.store.accept(command("new", new_session=True)),
            opened.store.accept(message("fresh")),
        )

    async with open_in(tmp_path, clock) as opened:
        found = await view(opened)
        sessions = await opened.readers.conversations.sessions(found.id, limit=10)
        earlier = await opened.readers.conversations.messages(first, limit=10)
        history = await opened.readers.conversations.history(found.session, limit=10)

    assert sorted(item.n for item in sessions) == [1, 2]
    assert [item.ended_at is None for item in sorted(sessions, key=lambda each: each.n)] == [
        False,
        True,
    ]
    assert [item.text for item in earlier] == ["old"]
    assert [item.text for item in history] == ["fresh"]


async def test_a_repeated_new_opens_one_session(opened: OpenStore) -> None:
    again = command("new", new_session=True)

    await opened.store.accept(again)
    await opened.store.accept(again)

    found = await view(opened)
    assert len(await opened.readers.conversations.sessions(found.id, limit=10)) == 2


async def test_an_edit_changes_the_message_and_what_a_turn_will_answer(opened: OpenStore) -> None:
    await opened.store.accept(message("helo", native_id="5"))

    await opened.store.accept(edited("5", "hello"))
    await opened.store.accept(edited("unknown", "?"))

    assert await texts(opened) == ["hello"]
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    event = claim.inputs[0].event
    assert isinstance(event, InboundMessage)
    assert event.text == "hello"
    assert await opened.readers.inbox.controls() == ()


async def test_a_deleted_message_is_gone_from_view_and_answered_by_no_turn(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("oops", native_id="5"))

    await opened.store.accept(deleted("5"))
    await opened.store.accept(deleted("5"))

    assert await texts(opened) == []
    assert (await view(opened)).message_count == 0
    assert await opened.store.claim_turn(worker="w") is None


async def test_attachments_are_kept_with_their_message(opened: OpenStore) -> None:
    photo = Attachment(kind=AttachmentKind.IMAGE, media_type="image/png", name="a.png", ref="f1")

    await opened.store.accept(message("look", attachments=(photo,)))

    stored = await opened.readers.conversations.messages((await view(opened)).session, limit=5)
    kept = stored[0].attachments[0]
    assert (kept.kind, kept.name, kept.media_type) == (photo.kind, "a.png", "image/png")
    assert kept.id is not None


async def test_an_operation_is_carried_out_although_its_caller_was_cancelled(
    opened: OpenStore,
) -> None:
    task = asyncio.create_task(opened.store.accept(message("hello")), name="accept")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await opened.store.finish((await _handed_over(opened)).inbound)

    assert await texts(opened) == ["hello", "marker"]


async def _handed_over(opened: OpenStore) -> Accepted:
    """Operations are carried out in order, so after this one the earlier ones are."""
    accepted = await opened.store.accept(message("marker"))
    assert isinstance(accepted, Accepted)
    return accepted


async def test_a_migrated_chat_keeps_its_history_under_both_keys(opened: OpenStore) -> None:
    old = Place(platform="telegram", chat="-1", chat_type=ChatType.GROUP)
    new = Place(platform="telegram", chat="-100", chat_type=ChatType.GROUP)
    await opened.store.accept(message("before", place=old))
    await opened.store.enqueue(
        Enqueue(place=old, group_key="k", parts=(text("answer"),), origin=Origin.SEND)
    )

    migrate = MigrateChat(platform="telegram", account="", old="-1", new="-100")
    moved = await opened.store.migrate_chat(migrate)
    again = await opened.store.migrate_chat(migrate)
    await opened.store.accept(message("after", place=new, sender=BEN))
    await opened.store.accept(message("late", place=old))

    delivery = await opened.store.claim_delivery(sending())
    assert (moved, again) == (1, 0)
    assert await texts(opened, new) == await texts(opened, old) == ["before", "after", "late"]
    assert delivery is not None
    assert delivery.place.chat == "-100"


async def test_a_message_of_the_control_lane_starts_no_turn(opened: OpenStore) -> None:
    await opened.store.accept(message("yes", lane=Lane.CONTROL))

    assert await opened.store.claim_turn(worker="w") is None
    assert await texts(opened) == ["yes"]


@requirement("fault.f27")
async def test_an_edit_or_deletion_before_its_message_breaks_nothing_and_moves_nothing(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("first"))
    for early in (edited("late", "changed"), deleted("later")):
        assert isinstance(await opened.store.accept(early), Accepted)
    for native_id in ("late", "later", "last"):
        await opened.store.accept(message(native_id, native_id=native_id))
    await opened.store.accept(edited("last", "last, edited"))
    await opened.store.accept(deleted("first"))

    assert await texts(opened) == ["first", "late", "later", "last, edited"]


@requirement("access.rate_quota")
async def test_what_may_not_begin_yet_waits_for_its_time_and_what_follows_waits_with_it(
    opened: OpenStore, clock: ManualClock
) -> None:
    held = replace(message("over"), not_before=clock.now() + timedelta(seconds=3))
    await opened.store.accept(held)
    await opened.store.accept(message("and more"))
    assert await opened.store.claim_turn(worker="w") is None

    clock.advance(3)
    claim = await opened.store.claim_turn(worker="w")

    assert claim is not None
    assert len(claim.inputs) == 2
    await opened.store.accept(message("meanwhile"))
    until = clock.now() + timedelta(seconds=9)
    assert (await opened.store.commit_turn(replace(commit(claim), not_before=until))).more
    assert await opened.store.claim_turn(worker="w") is None
    clock.advance(9)
    assert await opened.store.claim_turn(worker="w") is not None
