"""What a store promises about sessions: going back to one, choosing its model, taking words out of it."""

import asyncio
from dataclasses import replace

import pytest

from gateway.domain.conversation import ConversationView, SessionView
from gateway.domain.ids import MessageId
from gateway.domain.message import InboundMessage
from gateway.domain.model import Usage
from gateway.domain.operations.inbound import Accepted, Lane
from gateway.domain.operations.turns import (
    Claim,
    Compact,
    Exchange,
    Purpose,
    TurnEnd,
    UsageRecord,
)
from gateway.domain.operations.upkeep import SetModel
from store import OpenStore
from tests.contracts.values import HOME, command, commit, deleted, edited, message

pytestmark = pytest.mark.anyio


async def claimed(opened: OpenStore) -> Claim:
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    return claim


async def talk(opened: OpenStore, *texts: str, reply: str = "") -> Claim:
    """Say something and have it answered in one turn."""
    for text in texts:
        await opened.store.accept(message(text, native_id=f"native-{text}"))
    claim = await claimed(opened)
    await opened.store.commit_turn(commit(claim, reply or f"re {texts[-1]}"))
    return claim


async def view(opened: OpenStore) -> ConversationView:
    found = await opened.readers.conversations.find(HOME.session_key)
    assert found is not None
    return found


async def sessions(opened: OpenStore) -> dict[int, SessionView]:
    found = await opened.readers.conversations.sessions((await view(opened)).id, limit=10)
    return {item.n: item for item in found}


async def told(opened: OpenStore) -> list[str]:
    session = (await view(opened)).session
    return [item.text for item in await opened.readers.conversations.history(session, limit=50)]


async def readable(opened: OpenStore) -> list[str]:
    session = (await view(opened)).session
    return [item.text for item in await opened.readers.conversations.messages(session, limit=50)]


async def asked_again(opened: OpenStore) -> tuple[Claim, Exchange | None]:
    """Give a command of the turn lane; return its turn and what went before it."""
    await opened.store.accept(command("retry", lane=Lane.TURN))
    claim = await claimed(opened)
    return claim, await opened.readers.inbox.exchange_before(claim.turn)


def said(exchange: Exchange | None) -> list[str]:
    assert exchange is not None
    events = [item.event for item in exchange.inputs]
    return [event.text for event in events if isinstance(event, InboundMessage)]


async def test_what_follows_a_resume_belongs_to_the_earlier_session(opened: OpenStore) -> None:
    await talk(opened, "old")
    await opened.store.accept(command("new", new_session=True))
    await talk(opened, "fresh")

    await asyncio.gather(
        opened.store.accept(command("resume", "1", resume=1)),
        opened.store.accept(message("again")),
    )

    assert await told(opened) == ["old", "re old", "again"]
    found = await sessions(opened)
    assert {n: item.ended_at is None for n, item in found.items()} == {1: True, 2: False}
    assert (await view(opened)).session == found[1].id


async def test_a_resume_of_no_session_and_a_repeated_one_change_nothing(opened: OpenStore) -> None:
    await talk(opened, "old")
    back = command("resume", "1", resume=1)
    await opened.store.accept(command("new", new_session=True))

    await opened.store.accept(command("resume", "7", resume=7))
    assert (await view(opened)).session == (await sessions(opened))[2].id
    await opened.store.accept(back)
    await opened.store.accept(command("new", new_session=True))
    await opened.store.accept(back)

    assert (await view(opened)).session == (await sessions(opened))[3].id


async def test_a_command_belongs_to_the_session_it_was_given_in(opened: OpenStore) -> None:
    await talk(opened, "old")
    first = (await view(opened)).session
    for lane in (Lane.TURN, Lane.CONTROL):
        await opened.store.accept(command("something", lane=lane))
    await opened.store.accept(command("new", new_session=True))

    claim = await claimed(opened)
    controls = await opened.readers.inbox.controls()

    assert claim.session == first
    assert [item.session for item in controls] == [first, first]


async def test_a_turn_knows_the_model_that_was_chosen_for_its_session(opened: OpenStore) -> None:
    await opened.store.accept(message("hi"))
    session = (await view(opened)).session
    await opened.store.set_model(SetModel(session=session, model="openai:other"))

    claim = await claimed(opened)
    assert claim.model == "openai:other"
    await opened.store.recover(worker="w")
    assert (await claimed(opened)).model == "openai:other"
    found = await opened.readers.conversations.session(session)
    assert found is not None
    assert found.model == "openai:other"

    await opened.store.commit_turn(commit(await restarted(opened)))
    await opened.store.accept(command("new", new_session=True))
    await opened.store.accept(message("in a new session"))
    assert (await claimed(opened)).model == ""


async def restarted(opened: OpenStore) -> Claim:
    await opened.store.recover(worker="w")
    return await claimed(opened)


async def test_the_last_exchange_is_all_that_one_turn_answered_and_every_reply_since(
    opened: OpenStore,
) -> None:
    await talk(opened, "first")
    await talk(opened, "one", "two")
    await opened.store.accept(command("call", "x", lane=Lane.TURN))
    await opened.store.commit_turn(commit(await claimed(opened), "called"))

    claim, found = await asked_again(opened)
    await opened.store.accept(message("later"))

    assert said(found) == ["one", "two"]
    assert found is not None
    texts = {item.id: item.text for item in await history(opened)}
    assert [texts[each] for each in found.replies] == ["re two", "called"]
    assert await opened.readers.inbox.exchange_before(claim.turn) == found


async def history(opened: OpenStore):
    return await opened.readers.conversations.history((await view(opened)).session, limit=50)


async def test_an_exchange_reads_as_its_messages_do_now(opened: OpenStore) -> None:
    await talk(opened, "helo", "wrong")
    await opened.store.accept(edited("native-helo", "hello"))
    await opened.store.accept(deleted("native-wrong"))

    _, found = await asked_again(opened)

    assert said(found) == ["hello"]


async def test_an_exchange_of_another_session_or_behind_a_summary_is_none(
    opened: OpenStore,
) -> None:
    await talk(opened, "old")
    await opened.store.accept(command("new", new_session=True))
    claim, found = await asked_again(opened)
    assert found is None
    await opened.store.commit_turn(commit(claim, ""))

    await talk(opened, "long ago")
    newest = await opened.store.accept(message("now"))
    assert isinstance(newest, Accepted)
    assert newest.message is not None
    claim = await claimed(opened)
    await opened.store.compact(
        Compact(session=claim.session, first=newest.message, summary="so far")
    )
    await opened.store.commit_turn(commit(claim, "re now"))
    claim, found = await asked_again(opened)
    assert said(found) == ["now"]
    await undo(opened, claim, found)
    assert await told(opened) == ["so far"]
    assert (await asked_again(opened))[1] is None


async def undo(opened: OpenStore, claim: Claim, found: Exchange | None) -> None:
    assert found is not None
    own = tuple(item.message for item in found.inputs if item.message is not None)
    await opened.store.commit_turn(replace(commit(claim, ""), hides=(*own, *found.replies)))


async def test_what_a_turn_hides_is_told_no_more_and_stays_readable(opened: OpenStore) -> None:
    await talk(opened, "first")
    await talk(opened, "second")
    count = (await view(opened)).message_count

    claim, found = await asked_again(opened)
    await undo(opened, claim, found)

    assert await told(opened) == ["first", "re first"]
    assert await readable(opened) == ["first", "re first", "second", "re second"]
    assert (await view(opened)).message_count == count
    claim, found = await asked_again(opened)
    assert said(found) == ["first"]


async def test_a_turn_hides_nothing_of_another_session(opened: OpenStore) -> None:
    await talk(opened, "old")
    strange = MessageId(min(item.id for item in await history(opened)))
    await opened.store.accept(command("new", new_session=True))
    await opened.store.accept(message("fresh"))

    await opened.store.commit_turn(replace(commit(await claimed(opened)), hides=(strange,)))
    await opened.store.accept(command("resume", "1", resume=1))

    assert await told(opened) == ["old", "re old"]


async def test_what_was_spent_is_summed_up_over_the_sessions(opened: OpenStore) -> None:
    for n in (1, 2):
        await opened.store.accept(message(f"hi {n}"))
        usage = UsageRecord(
            purpose=Purpose.TURN,
            model="m",
            usage=Usage(input_tokens=10 * n, output_tokens=n),
            ms=1,
        )
        done = commit(await claimed(opened), end=TurnEnd.DONE)
        await opened.store.commit_turn(replace(done, usage=(usage,)))
        await opened.store.accept(command("new", new_session=True))

    spent = await opened.readers.conversations.spent((await view(opened)).id)

    assert (spent.sessions, spent.input_tokens, spent.output_tokens) == (3, 30, 3)
