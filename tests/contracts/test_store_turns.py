"""What a store promises about turns: one at a time, in order, every write under its fence."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.domain.conversation import Role
from gateway.domain.errors import Conflict, Fenced, NotFound
from gateway.domain.ids import ChatType, MessageId, Place, SessionId
from gateway.domain.message import InboundMessage
from gateway.domain.model import Usage
from gateway.domain.operations.inbound import Accept, Lane, StoredInbound
from gateway.domain.operations.turns import (
    Claim,
    Compact,
    DoneStep,
    Purpose,
    Release,
    RepliedStep,
    SentStep,
    StepKind,
    StepState,
    TurnEnd,
    UsageRecord,
)
from gateway.domain.question import Action, Question
from store import OpenStore
from tests.contracts.values import (
    ANNA,
    ARGUMENTS,
    BEN,
    GROUP,
    HOME,
    ask,
    command,
    commit,
    decide,
    deleted,
    message,
    planned,
    question,
    record,
    sending,
)
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


async def claimed(opened: OpenStore) -> Claim:
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    return claim


def inputs(claim: Claim) -> list[str]:
    return texts(claim.inputs)


def texts(items: Sequence[StoredInbound]) -> list[str]:
    return [item.event.text for item in items if isinstance(item.event, InboundMessage)]


def alone(text: str) -> Accept:
    accept = message(text)
    assert isinstance(accept.event, InboundMessage)
    return replace(accept, event=replace(accept.event, alone=True))


async def restarted(opened: OpenStore) -> Claim:
    """Claim again as a process does that finds what an earlier one left."""
    await opened.store.recover(worker="w")
    return await claimed(opened)


async def test_nothing_is_claimed_when_nothing_waits(opened: OpenStore) -> None:
    assert await opened.store.claim_turn(worker="w") is None


async def test_the_conversation_that_waits_longest_comes_first(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.accept(message("first", place=GROUP))
    clock.advance(1)
    await opened.store.accept(message("second"))

    claims = [await claimed(opened), await claimed(opened)]

    assert [claim.place for claim in claims] == [GROUP, HOME]
    assert await opened.store.claim_turn(worker="w") is None


async def test_a_conversation_of_a_held_account_is_left_waiting(opened: OpenStore) -> None:
    await opened.store.accept(message("first"))
    held = [(HOME.platform, HOME.account)]

    assert await opened.store.claim_turn(worker="w", held=held) is None
    assert await opened.store.claim_turn(worker="w", held=[(HOME.platform, "other")]) is not None


async def test_a_turn_takes_the_messages_that_follow_from_the_same_sender(
    opened: OpenStore,
) -> None:
    for sender, text in ((ANNA, "1"), (ANNA, "2"), (BEN, "3"), (ANNA, "4")):
        await opened.store.accept(message(text, place=GROUP, sender=sender))

    taken: list[list[str]] = []
    more: list[bool] = []
    for _ in range(3):
        claim = await claimed(opened)
        taken.append(inputs(claim))
        more.append((await opened.store.commit_turn(commit(claim))).more)

    assert taken == [["1", "2"], ["3"], ["4"]]
    assert more == [True, True, False]


async def test_a_turn_ends_before_the_messages_of_a_new_session(opened: OpenStore) -> None:
    await opened.store.accept(message("old"))
    await opened.store.accept(command("new", new_session=True))
    await opened.store.accept(message("new"))

    first = await claimed(opened)
    await opened.store.commit_turn(commit(first))
    second = await claimed(opened)

    assert (inputs(first), inputs(second)) == (["old"], ["new"])
    assert first.session != second.session


async def test_a_command_of_the_turn_lane_is_a_turn_of_its_own(opened: OpenStore) -> None:
    await opened.store.accept(message("1"))
    await opened.store.accept(command("call", "notes.add {}", lane=Lane.TURN))
    await opened.store.accept(message("2"))

    kinds: list[list[str]] = []
    for _ in range(3):
        claim = await claimed(opened)
        kinds.append([type(item.event).__name__ for item in claim.inputs])
        await opened.store.commit_turn(commit(claim))

    assert kinds == [["InboundMessage"], ["CommandGiven"], ["InboundMessage"]]


async def test_a_message_that_arrives_during_a_turn_waits_for_the_next(opened: OpenStore) -> None:
    await opened.store.accept(message("1"))
    claim = await claimed(opened)
    await opened.store.accept(message("2"))

    assert await opened.store.claim_turn(worker="w2") is None
    committed = await opened.store.commit_turn(commit(claim))

    assert committed.more
    assert inputs(await claimed(opened)) == ["2"]


async def test_many_claims_at_once_never_give_one_conversation_to_two(opened: OpenStore) -> None:
    places = [Place(platform="telegram", chat=f"{n}", chat_type=ChatType.DM) for n in range(10)]
    await asyncio.gather(*(opened.store.accept(message("hi", place=each)) for each in places))

    claims = await asyncio.gather(*(opened.store.claim_turn(worker=f"w{n}") for n in range(25)))

    won = [claim.conversation for claim in claims if claim is not None]
    assert len(won) == len(set(won)) == 10


async def test_a_turn_resumes_with_its_steps_and_what_was_out_is_unknown(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("go"))
    first = await claimed(opened)
    await opened.store.record_steps(
        record(
            first,
            replied=(RepliedStep(n=1, result='{"text":"calling"}'),),
            planned=(planned(2), planned(3, repeatable=True), planned(4)),
            sent=(SentStep(n=2), SentStep(n=3)),
        )
    )

    second = await restarted(opened)

    assert second.resumed
    assert (second.turn, second.attempts, second.rounds) == (first.turn, 2, 1)
    assert second.fence > first.fence
    assert inputs(second) == ["go"]
    assert [(step.n, step.kind, step.state) for step in second.steps] == [
        (1, StepKind.MODEL, StepState.OK),
        (2, StepKind.TOOL, StepState.UNKNOWN),
        (3, StepKind.TOOL, StepState.SENT),
        (4, StepKind.TOOL, StepState.PLANNED),
    ]


async def test_a_repeatable_call_may_be_sent_again_and_no_other(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    first = await claimed(opened)
    await opened.store.record_steps(
        record(
            first,
            planned=(planned(1), planned(2, repeatable=True)),
            sent=(SentStep(n=1), SentStep(n=2)),
        )
    )
    second = await restarted(opened)

    with pytest.raises(Conflict):
        await opened.store.record_steps(record(second, sent=(SentStep(n=1, again=True),)))
    with pytest.raises(Conflict):
        await opened.store.record_steps(record(second, sent=(SentStep(n=2),)))
    recorded = await opened.store.record_steps(record(second, sent=(SentStep(n=2, again=True),)))

    assert recorded.arguments == {2: ARGUMENTS}


async def test_a_call_that_is_out_is_not_sent_again_unless_it_may_be_repeated(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    await opened.store.record_steps(record(claim, planned=(planned(1),), sent=(SentStep(n=1),)))

    with pytest.raises(Conflict):
        await opened.store.record_steps(record(claim, sent=(SentStep(n=1, again=True),)))


async def test_a_zombie_does_not_learn_the_end_of_the_turn_it_lost(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    zombie = await claimed(opened)
    await opened.store.commit_turn(commit(await restarted(opened), "owner"))

    with pytest.raises(Fenced):
        await opened.store.commit_turn(commit(zombie, "zombie"))


async def test_an_outdated_fence_writes_nothing(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    zombie = await claimed(opened)
    owner = await restarted(opened)
    head = await opened.readers.events.head()

    with pytest.raises(Fenced):
        await opened.store.record_steps(record(zombie, planned=(planned(1),)))
    with pytest.raises(Fenced):
        await opened.store.commit_turn(commit(zombie, "zombie"))
    await opened.store.release(Release(conversation=zombie.conversation, fence=zombie.fence))

    assert await opened.readers.events.head() == head
    assert await opened.store.claim_delivery(sending()) is None
    assert await opened.store.claim_turn(worker="w3") is None
    await opened.store.commit_turn(commit(owner, "owner"))
    delivery = await opened.store.claim_delivery(sending())
    assert delivery is not None
    assert delivery.body == "owner"


async def test_recording_is_all_or_nothing(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    await opened.store.record_steps(record(claim, planned=(planned(1),)))
    other = replace(planned(1), call_id="another")

    with pytest.raises(Conflict):
        await opened.store.record_steps(
            record(claim, sent=(), planned=(planned(2), other), waiting=True)
        )

    again = await restarted(opened)
    assert [(step.n, step.call_id) for step in again.steps] == [(1, "call-1")]


async def test_repeating_a_recording_changes_nothing(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    steps = record(
        claim,
        replied=(RepliedStep(n=1, result='{"text":""}'),),
        planned=(planned(2),),
        done=(DoneStep(n=2, state=StepState.ERROR, result='"no"', error="refused"),),
    )

    await opened.store.record_steps(steps)
    await opened.store.record_steps(steps)

    again = await restarted(opened)
    assert [(step.n, step.state, step.result) for step in again.steps] == [
        (1, StepState.OK, '{"text":""}'),
        (2, StepState.ERROR, '"no"'),
    ]


async def test_a_result_never_replaces_another(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    done = DoneStep(n=1, state=StepState.OK, result='"first"')
    await opened.store.record_steps(record(claim, planned=(planned(1),), done=(done,)))

    with pytest.raises(Conflict):
        await opened.store.record_steps(record(claim, done=(replace(done, result='"second"'),)))
    with pytest.raises(Conflict):
        await opened.store.record_steps(record(claim, sent=(SentStep(n=1),)))


async def test_an_approval_is_used_up_by_the_one_call_it_was_given_for(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    await opened.store.record_steps(record(claim, planned=(planned(1), planned(2))))
    asked = await opened.store.ask(ask(question(claim=claim, step=1)))

    async def send(step: int) -> str:
        recorded = await opened.store.record_steps(
            record(claim, sent=(SentStep(n=step, question=asked.id),))
        )
        return recorded.arguments[step]

    with pytest.raises(Conflict):
        await send(1)
    await opened.store.decide(decide(asked, Action.ALLOW_ONCE))
    with pytest.raises(Conflict):
        await send(2)
    ran = await send(1)
    with pytest.raises(Conflict):
        await send(1)

    used = await opened.readers.questions.find(asked.id)
    again = await restarted(opened)
    assert ran == ARGUMENTS
    assert isinstance(used, Question)
    assert used.consumed
    assert [step.state for step in again.steps] == [StepState.UNKNOWN, StepState.PLANNED]
    assert again.steps[0].question == asked.id


async def test_an_approval_of_other_arguments_lets_nothing_run(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    changed = replace(planned(1), args_sha="other")
    await opened.store.record_steps(record(claim, planned=(changed,)))
    asked = await opened.store.ask(ask(question(claim=claim, step=1)))
    await opened.store.decide(decide(asked))

    with pytest.raises(Conflict):
        await opened.store.record_steps(record(claim, sent=(SentStep(n=1, question=asked.id),)))

    again = await restarted(opened)
    assert [step.state for step in again.steps] == [StepState.PLANNED]


async def test_messages_that_continue_a_running_turn_join_it(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    for text in ("and this", "and that"):
        await opened.store.accept(message(text))

    recorded = await opened.store.record_steps(record(claim, join=1))

    assert texts(recorded.joined) == ["and this", "and that"]
    again = await restarted(opened)
    assert inputs(again) == ["go", "and this", "and that"]
    assert [(step.n, step.kind) for step in again.steps] == [(1, StepKind.INPUT)]
    assert again.steps[0].joined == tuple(item.id for item in recorded.joined)
    assert not (await opened.store.commit_turn(commit(again))).more
    assert await opened.store.claim_turn(worker="w") is None


async def test_joining_again_under_the_same_step_tells_the_same(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    await opened.store.accept(message("and this"))
    first = await opened.store.record_steps(record(claim, join=1))
    await opened.store.accept(message("later"))

    second = await opened.store.record_steps(record(claim, join=1))

    assert second == first
    assert (await opened.store.record_steps(record(claim, join=2))).joined != ()


async def test_without_anything_to_join_there_is_no_step(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)

    assert (await opened.store.record_steps(record(claim, join=1))).joined == ()

    assert (await restarted(opened)).steps == ()


async def test_only_what_continues_the_turn_joins_it_and_nothing_overtakes(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("go", place=GROUP))
    claim = await claimed(opened)
    for sender, text in ((ANNA, "mine"), (BEN, "his"), (ANNA, "mine too")):
        await opened.store.accept(message(text, place=GROUP, sender=sender))

    recorded = await opened.store.record_steps(record(claim, join=1))
    await opened.store.commit_turn(commit(claim))

    assert texts(recorded.joined) == ["mine"]
    assert inputs(await claimed(opened)) == ["his"]


async def test_a_message_of_a_new_session_does_not_join(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    await opened.store.accept(command("new", new_session=True))
    await opened.store.accept(message("new"))

    assert (await opened.store.record_steps(record(claim, join=1))).joined == ()


async def test_a_message_that_was_taken_back_does_not_join(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    await opened.store.accept(message("oops", native_id="9"))
    await opened.store.accept(deleted("9"))

    assert (await opened.store.record_steps(record(claim, join=1))).joined == ()


async def test_nothing_joins_the_turn_of_a_command(opened: OpenStore) -> None:
    await opened.store.accept(command("call", "notes.add {}", lane=Lane.TURN))
    claim = await claimed(opened)
    await opened.store.accept(message("hello"))

    assert (await opened.store.record_steps(record(claim, join=1))).joined == ()


async def test_a_message_that_stands_alone_is_a_turn_of_its_own(opened: OpenStore) -> None:
    await opened.store.accept(message("1"))
    await opened.store.accept(alone("2"))
    await opened.store.accept(message("3"))

    taken: list[list[str]] = []
    for _ in range(3):
        claim = await claimed(opened)
        taken.append(inputs(claim))
        assert (await opened.store.record_steps(record(claim, join=1))).joined == ()
        await opened.store.commit_turn(commit(claim))

    assert taken == [["1"], ["2"], ["3"]]


async def test_the_end_of_a_turn_is_reply_delivery_event_and_books_together(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)
    spent = UsageRecord(
        purpose=Purpose.TURN, model="openai:x", usage=Usage(input_tokens=7, output_tokens=3), ms=5
    )

    committed = await opened.store.commit_turn(
        replace(
            commit(claim, "answer"), usage=(spent,), replied=(RepliedStep(n=1, result='"answer"'),)
        )
    )

    view = await opened.readers.conversations.find(HOME.session_key)
    assert view is not None
    assert view.last_message is not None
    assert (view.last_message.id, view.last_message.role) == (committed.message, Role.ASSISTANT)
    assert (view.message_count, view.input_tokens, view.output_tokens) == (2, 7, 3)
    assert committed.cursor == await opened.readers.events.head()
    delivery = await opened.store.claim_delivery(sending())
    assert delivery is not None
    assert (delivery.body, delivery.place) == ("answer", HOME)
    books = await opened.readers.books.usage(since=clock.now(), actor=ANNA)
    assert books == {"openai:x": 10}
    assert await opened.store.claim_turn(worker="w") is None


async def test_repeating_the_end_of_a_turn_tells_the_same_and_doubles_nothing(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("go"))
    claim = await claimed(opened)

    first = await opened.store.commit_turn(commit(claim))
    second = await opened.store.commit_turn(commit(claim))

    view = await opened.readers.conversations.find(HOME.session_key)
    assert second == first
    assert view is not None
    assert view.message_count == 2
    assert await opened.store.claim_delivery(sending()) is not None
    assert await opened.store.claim_delivery(sending()) is None


async def test_a_turn_without_a_reply_stores_no_message(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    head = await opened.readers.events.head()

    committed = await opened.store.commit_turn(
        commit(await claimed(opened), "", end=TurnEnd.CANCELLED)
    )

    assert (committed.message, committed.cursor, committed.more) == (None, None, False)
    assert await opened.readers.events.head() == head
    assert await opened.store.claim_delivery(sending()) is None


async def test_what_is_given_back_is_claimed_again(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    first = await claimed(opened)

    await opened.store.release(Release(conversation=first.conversation, fence=first.fence))

    second = await claimed(opened)
    assert (second.turn, second.resumed) == (first.turn, True)


async def test_compacting_puts_a_summary_for_what_was_before(opened: OpenStore) -> None:
    for number in range(3):
        await opened.store.accept(message(f"{number}"))
    view = await opened.readers.conversations.find(HOME.session_key)
    assert view is not None
    stored = await opened.readers.conversations.messages(view.session, limit=10)
    compact = Compact(session=view.session, first=stored[2].id, summary="they counted")

    await opened.store.compact(compact)
    await opened.store.compact(compact)

    history = await opened.readers.conversations.history(view.session, limit=10)
    readable = await opened.readers.conversations.messages(view.session, limit=10)
    assert [item.text for item in history] == ["they counted", "2"]
    assert [item.text for item in readable] == ["0", "1", "2"]


async def test_compacting_an_unknown_session_is_an_error(opened: OpenStore) -> None:
    with pytest.raises(NotFound):
        await opened.store.compact(
            Compact(session=SessionId(99), first=MessageId(1), summary="nothing")
        )
