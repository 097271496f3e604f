from gateway.domain.conversation import Role, StoredMessage
from gateway.domain.ids import (
    ChatType,
    ConversationId,
    InboundId,
    MessageId,
    Place,
    SessionId,
    TurnId,
)
from gateway.domain.model import AssistantSaid, FunctionAnswer, UserSaid
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import Claim
from gateway.runtime.history import (
    LEFT_OUT,
    SUMMARY_HEADING,
    earlier,
    fitted,
    said_before,
    said_now,
)
from gateway.runtime.tokens import message_tokens
from tests.fakes.loopback import ANNA, BEN, PLATFORM, chat, message
from tests.support.clock import NOON
from tests.support.requirement import requirement

GROUP = Place(platform=PLATFORM, chat="9", chat_type=ChatType.TOPIC, thread="3")


def stored(identifier: int, text: str, role: Role = Role.USER) -> StoredMessage:
    return StoredMessage(
        id=MessageId(identifier), session=SessionId(1), role=role, author=ANNA, text=text, at=NOON
    )


def claim(*numbers: int, place: Place | None = None) -> Claim:
    where = place or chat()
    return Claim(
        conversation=ConversationId(1),
        place=where,
        session=SessionId(1),
        fence=1,
        turn=TurnId(1),
        requester=ANNA,
        inputs=tuple(
            StoredInbound(
                id=InboundId(n),
                conversation=ConversationId(1),
                session=SessionId(1),
                event=message(f"text {n}", n=n, place=where, sender=BEN),
                message=MessageId(n),
            )
            for n in numbers
        ),
        steps=(),
        rounds=0,
        attempts=1,
        resumed=False,
    )


def test_a_turn_sees_neither_its_own_inputs_twice_nor_what_came_after_them() -> None:
    history = [
        stored(1, "first"),
        stored(2, "mine"),
        stored(3, "reply to first", Role.ASSISTANT),
        stored(4, "also mine"),
        stored(5, "somebody else, later"),
    ]

    assert [item.id for item in earlier(history, claim(2, 4))] == [1, 3]


def test_speakers_are_named_only_where_several_people_share_a_conversation() -> None:
    assert said_now(claim(1)) == (UserSaid(text="text 1"),)
    assert said_now(claim(1, place=GROUP)) == (UserSaid(text="[Ben] text 1"),)
    assert said_before(stored(1, "hi"), shared=True) == UserSaid(text="[Anna] hi")


def test_a_summary_is_told_as_one_and_notes_are_our_own_words() -> None:
    summary = said_before(stored(1, "we met", Role.SUMMARY), shared=False)
    note = said_before(stored(2, "posted", Role.NOTE), shared=False)

    assert summary == UserSaid(text=f"{SUMMARY_HEADING}\nwe met")
    assert note == AssistantSaid(text="posted")


@requirement("model.history")
def test_a_history_over_the_bound_loses_its_oldest_part_and_keeps_the_summary() -> None:
    summary = UserSaid(text=f"{SUMMARY_HEADING}\nwe met")
    before = [summary, *[UserSaid(text=f"{n} " + "x" * 400) for n in range(50)]]
    inputs = [UserSaid(text="and now?")]

    history = fitted(before, inputs, [], budget=1_000)

    assert message_tokens(history) <= 1_000
    assert history[0] == summary
    assert history[-2:] == (before[-1], inputs[0])


def test_a_huge_tool_answer_is_cut_and_says_so() -> None:
    rounds = [FunctionAnswer(id="1", name="tool_call", text="y" * 1_000_000)]

    history = fitted([], [UserSaid(text="go")], rounds, budget=2_000)

    assert message_tokens(history) <= 2_000
    assert "characters left out" in history[-1].text


def test_older_answers_of_a_long_turn_give_way_before_the_newest() -> None:
    rounds = [FunctionAnswer(id=str(n), name="t", text=f"{n}" * 8_000) for n in range(9)]

    history = fitted([], [UserSaid(text="go")], rounds, budget=16_000)

    assert message_tokens(history) <= 16_000
    assert history[-1] == rounds[-1]
    assert "left out" in history[1].text


def test_a_message_larger_than_the_window_is_shortened_not_dropped() -> None:
    (said,) = fitted([], [UserSaid(text="z" * 100_000)], [], budget=1_000)

    assert "left out" in said.text


def test_a_huge_message_that_joined_a_turn_is_shortened_too() -> None:
    joined = UserSaid(text="z" * 100_000)
    answer = FunctionAnswer(id="1", name="tool_call", text="done")

    history = fitted([], [UserSaid(text="go")], [answer, joined], budget=1_000)

    assert message_tokens(history) <= 1_000
    assert history[:2] == (UserSaid(text="go"), answer)
    assert "left out" in history[2].text


def test_a_backlog_larger_than_the_window_keeps_its_newest_part_and_says_so() -> None:
    inputs = [UserSaid(text=f"{n:03d} " + "x" * 100) for n in range(200)]

    history = fitted([], inputs, [], budget=1_000)

    assert message_tokens(history) <= 1_000
    note, *kept = history
    assert kept == list(inputs[-len(kept) :])
    assert len(kept) > 10
    assert isinstance(note, UserSaid)
    assert note.text == LEFT_OUT.format(200 - len(kept))
