import pytest

from gateway.domain.conversation import Activity, Role
from gateway.domain.ids import (
    Actor,
    AttachmentId,
    ChatType,
    ConversationId,
    InboundId,
    MessageId,
    Place,
    SessionId,
)
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.operations.inbound import StoredInbound
from store.codec import event_to_json, from_ms
from store.readers import OpenReaders
from tests.store.rows import DM, Rows
from tests.store.samples import command

pytestmark = pytest.mark.anyio


def dm(chat: int, *, platform: str = "telegram") -> Place:
    return Place(platform=platform, chat=str(chat), chat_type=ChatType.DM)


async def test_conversations_come_newest_first_page_by_page(
    readers: OpenReaders, rows: Rows
) -> None:
    # Two of the same instant: the page mark must tell them apart.
    ids = [rows.conversation(dm(n), last_at=n // 2) for n in range(7)]

    seen: list[int] = []
    mark: str | None = None
    for _ in range(4):
        page = await readers.ports.conversations.page(before=mark, limit=2)
        seen += [view.id for view in page.conversations]
        mark = page.next

    assert seen == ids[::-1]
    assert mark is None


async def test_a_full_last_page_has_no_next(readers: OpenReaders, rows: Rows) -> None:
    rows.conversation()

    page = await readers.ports.conversations.page(limit=1)

    assert len(page.conversations) == 1
    assert page.next is None


@pytest.mark.parametrize("mark", ["", "x", "1", "1.", "-1.2", "1.2.3", "٣.٤"])
async def test_a_foreign_page_mark_is_refused(readers: OpenReaders, mark: str) -> None:
    with pytest.raises(ValueError, match="page"):
        await readers.ports.conversations.page(before=mark, limit=1)


async def test_conversations_are_found_by_platform_and_by_folded_words(
    readers: OpenReaders, rows: Rows
) -> None:
    slack = rows.conversation(dm(1, platform="slack"), search_text="straße 100%")
    telegram = rows.conversation(dm(2), search_text="strasse")
    pages = readers.ports.conversations

    by_platform = await pages.page(platform="slack", limit=9)
    by_words = await pages.page(search="STRASSE", limit=9)
    by_sign = await pages.page(search="0%", limit=9)

    assert [view.id for view in by_platform.conversations] == [slack]
    assert [view.id for view in by_words.conversations] == [telegram]
    assert [view.id for view in by_sign.conversations] == [slack]


async def test_a_conversation_shows_its_session_and_last_message(
    readers: OpenReaders, rows: Rows
) -> None:
    place = Place(platform="discord", account="b", chat="5", chat_type=ChatType.THREAD, thread="9")
    conversation = rows.conversation(
        place, display_name="ops", user_name="Ada", chat_title="Guild", created_at=4, last_at=5
    )
    message = rows.message(conversation, "latest", role="assistant", author="agent")

    found = await readers.ports.conversations.find(place.session_key)

    assert found is not None
    assert (found.id, found.place, found.session_key) == (conversation, place, place.session_key)
    assert (found.display_name, found.chat_name, found.user_name) == ("ops", "Guild", "Ada")
    assert (found.created_at, found.updated_at) == (from_ms(4), from_ms(5))
    assert found.last_message is not None
    assert (found.last_message.id, found.last_message.role) == (message, Role.ASSISTANT)
    assert found.last_message.text == "latest"


async def test_a_key_from_before_the_chat_migrated_leads_to_its_conversation(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.insert("conversation_alias", session_key="old", conversation_id=conversation)

    found = await readers.ports.conversations.find("old")

    assert found is not None
    assert found.id == conversation
    assert await readers.ports.conversations.find("older") is None


async def test_sessions_come_newest_first(readers: OpenReaders, rows: Rows) -> None:
    conversation = ConversationId(rows.conversation())
    rows.session(conversation, title="second", ended_at=9)

    sessions = await readers.ports.conversations.sessions(conversation, limit=5)

    assert [(view.n, view.title, view.ended_at) for view in sessions] == [
        (2, "second", from_ms(9)),
        (1, "", None),
    ]


async def test_messages_are_read_forwards_backwards_and_between(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    ids = [MessageId(rows.message(conversation, str(n))) for n in range(6)]
    read = readers.ports.conversations.messages
    session = SessionId(1)

    newest = await read(session, limit=2)
    before = await read(session, before=ids[4], limit=2)
    after = await read(session, after=ids[1], limit=2)
    between = await read(session, after=ids[0], before=ids[3], limit=9)

    assert [message.id for message in newest] == ids[4:]
    assert [message.id for message in before] == ids[2:4]
    assert [message.id for message in after] == ids[2:4]
    assert [message.id for message in between] == ids[1:3]


async def test_people_read_notes_and_undone_messages_but_no_deleted_ones_or_summaries(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.message(conversation, "summary", role="summary")
    rows.message(conversation, "note", role="note")
    rows.message(conversation, "undone", hidden_at=1)
    rows.message(conversation, "gone", deleted_at=1)

    messages = await readers.ports.conversations.messages(SessionId(1), limit=9)

    assert [message.text for message in messages] == ["note", "undone"]


async def test_the_model_sees_the_latest_summary_and_what_follows(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.message(conversation, "old")
    first = rows.message(conversation, "first")
    rows.message(conversation, "undone", hidden_at=1)
    rows.message(conversation, "older summary", role="summary")
    rows.message(conversation, "second")
    rows.message(conversation, "summary", role="summary")
    rows.message(conversation, "third")
    rows.update("session", 1, context_from=first)
    history = readers.ports.conversations.history

    everything = await history(SessionId(1), limit=9)
    newest = await history(SessionId(1), limit=1)

    assert [message.text for message in everything] == ["summary", "first", "second", "third"]
    assert [message.text for message in newest] == ["summary", "third"]


async def test_a_message_carries_its_author_and_files(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation)
    rows.insert(
        "attachment",
        message_id=message,
        kind="image",
        name="a.png",
        media_type="image/png",
        size=3,
        native_ref="ref",
        state="pending",
        created_at=0,
    )

    (read,) = await readers.ports.conversations.messages(SessionId(1), limit=1)
    told = await readers.ports.conversations.history(SessionId(1), limit=1)

    assert told == (read,)
    assert read.author == Actor(platform="telegram", id="7", name="Ada")
    assert read.attachments == (
        Attachment(
            id=AttachmentId(1),
            kind=AttachmentKind.IMAGE,
            name="a.png",
            media_type="image/png",
            size=3,
            ref="ref",
        ),
    )


# --- what waits in a conversation -------------------------------------------------


async def test_control_events_wait_in_order_until_they_are_worked_off(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.inbound(conversation, event_to_json(command("stop")), state="done")
    first = rows.inbound(conversation, event_to_json(command("help")))
    second = rows.inbound(conversation, event_to_json(command("new")))
    rows.inbound(conversation, event_to_json(command("call")), lane="turn")

    found = await readers.ports.inbox.controls()

    assert [item.id for item in found] == [first, second]
    assert found[0] == StoredInbound(
        id=InboundId(first),
        conversation=ConversationId(conversation),
        session=SessionId(1),
        event=command("help"),
    )
    assert await readers.ports.inbox.waiting(DM) == 1


async def test_a_message_keeps_the_session_it_was_sent_in(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation)
    inbound = rows.inbound(conversation, event_to_json(command("x")), message_id=message)
    later = rows.session(conversation)
    rows.update("conversation", conversation, current_session_id=later)

    found = await readers.ports.inbox.find(InboundId(inbound))

    assert found is not None
    assert (found.session, found.message) == (1, message)


async def test_a_damaged_or_blanked_payload_is_left_out(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    blanked = rows.inbound(conversation, "")
    rows.inbound(conversation, "[]")
    good = rows.inbound(conversation, event_to_json(command("help")))

    assert [item.id for item in await readers.ports.inbox.controls()] == [good]
    assert await readers.ports.inbox.find(InboundId(blanked)) is None


async def test_a_conversation_is_busy_then_asking_then_settled(
    readers: OpenReaders, rows: Rows
) -> None:
    activity = readers.ports.inbox.activity
    unknown = await activity(DM)
    conversation = rows.conversation()
    seen = [unknown, await activity(DM)]

    message = rows.inbound(conversation, "{}", lane="turn", kind="message")
    seen.append(await activity(DM))
    rows.update("inbound", message, state="done")
    turn = rows.insert(
        "turn",
        conversation_id=conversation,
        session_id=1,
        requester="telegram:7",
        state="running",
        fence=1,
        started_at=0,
    )
    seen.append(await activity(DM))
    question = rows.question(conversation)
    card = rows.delivery(conversation, kind="card", question_id=question)
    seen.append(await activity(DM))
    rows.update("delivery", card, state="sent", native_id="1")
    seen.append(await activity(DM))
    press = rows.inbound(conversation, "{}", kind="press")
    seen.append(await activity(DM))
    rows.update("inbound", press, state="done")
    rows.connection.execute("UPDATE question SET state = 'allowed'")
    seen.append(await activity(DM))
    rows.update("turn", turn, state="done")
    seen.append(await activity(DM))

    settled, busy, asking = Activity.SETTLED, Activity.BUSY, Activity.ASKING
    assert seen == [settled, settled, busy, busy, busy, asking, busy, busy, settled]


async def test_an_edit_of_what_was_never_sent_keeps_nobody_waiting(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    card = rows.delivery(conversation, kind="card", state="dead")
    rows.delivery(conversation, kind="edit", edits_id=card)

    assert await readers.ports.inbox.activity(DM) is Activity.SETTLED
