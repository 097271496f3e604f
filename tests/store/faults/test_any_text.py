"""Whatever text people, models and servers produce is stored and read back, in full length."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.domain.canonical import canonical, sha256_of
from gateway.domain.delivery import DeliveryKind, Origin, Part
from gateway.domain.events import MessageStored
from gateway.domain.ids import Cursor, QuestionId, SessionId
from gateway.domain.message import InboundMessage
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue
from gateway.domain.operations.questions import Ask
from gateway.domain.operations.turns import CommitTurn, TurnEnd
from gateway.domain.question import Action, Question, QuestionKind
from store import OpenStore, open_store
from store.codec import from_ms, storable
from tests.store.rows import DM
from tests.store.samples import ADA, accept_text
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = [pytest.mark.anyio, requirement("store.any_text")]

TEXTS = [
    pytest.param("half an emoji \ud83d here", id="high surrogate"),
    pytest.param("\udc80 a lost byte \udcff", id="low surrogates"),
    pytest.param("zero\x00in the middle\x00", id="NUL"),
    pytest.param("\x00\ud800\x00", id="nothing else"),
    pytest.param("é😀\u202e\u200b\x1b[31m\ufffe\U0010ffff", id="odd but whole"),
    pytest.param("lorem \ud83d ipsum " * 65_000, id="1 MB"),
    pytest.param("", id="empty"),
]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[OpenStore]:
    async with open_store(tmp_path / "state.db", clock=ManualClock()) as store:
        yield store


@pytest.mark.parametrize("text", TEXTS)
async def test_a_message_of_any_text_is_stored_and_shown(opened: OpenStore, text: str) -> None:
    await opened.store.accept(accept_text(text, dedupe="1"))
    await opened.store.accept(accept_text("next", dedupe="2"))

    messages = await opened.readers.conversations.messages(SessionId(1), limit=9)
    page = await opened.readers.events.after(Cursor(1), limit=9)
    listed = await opened.readers.conversations.page(limit=9)

    shown = storable(text)
    assert len(shown) == len(text)
    assert [message.text for message in messages] == [shown, "next"]
    assert not any(message.degraded for message in messages)
    facts = [event.fact for event in page.events]
    assert [fact.text for fact in facts if isinstance(fact, MessageStored)] == [shown, "next"]
    assert len(listed.conversations) == 1


@pytest.mark.parametrize("text", TEXTS)
async def test_a_turn_gets_every_character_of_its_input_and_any_reply_is_kept(
    opened: OpenStore, text: str
) -> None:
    await opened.store.accept(accept_text(text, dedupe="1"))

    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    (waiting,) = claim.inputs
    assert isinstance(waiting.event, InboundMessage)
    await opened.store.commit_turn(
        CommitTurn(
            conversation=claim.conversation,
            turn=claim.turn,
            fence=claim.fence,
            end=TurnEnd.DONE,
            reply=f"You said: {text}",
            parts=(Part(kind=DeliveryKind.TEXT, body=text),),
            error=text,
        )
    )
    messages = await opened.readers.conversations.messages(SessionId(1), limit=9)
    delivery = await opened.store.claim_delivery(
        ClaimDelivery(
            platform=DM.platform,
            account=DM.account,
            worker="w",
            lease_until=from_ms(2**41),
            cost_ms={},
            burst_ms=0,
        )
    )

    assert waiting.event.text == text, "the event itself keeps what text columns cannot"
    assert messages[-1].text == f"You said: {storable(text)}"
    assert delivery is not None
    assert delivery.body == storable(text)


@pytest.mark.parametrize("text", TEXTS)
async def test_the_arguments_that_will_run_are_exactly_those_that_were_asked_about(
    opened: OpenStore, text: str
) -> None:
    await opened.store.accept(accept_text("hi", dedupe="1"))
    arguments = canonical({"text": text, text: 1})
    question = Question(
        id=QuestionId("a" * 26),
        short="aaaa",
        kind=QuestionKind.TOOL_CALL,
        place=DM,
        shown_in=DM,
        requester=ADA,
        actions=(Action.ALLOW_ONCE, Action.DENY),
        body=f"Run it? {text}",
        args_sha=sha256_of(arguments),
        created_at=from_ms(0),
        expires_at=from_ms(2**41),
        server="demo",
        tool=f"tool {text[:100]}",
        arguments=arguments,
    )
    card = Part(kind=DeliveryKind.CARD, body=text, payload=canonical({"text": text}))

    await opened.store.ask(Ask(question=question, buttons=(), card=card))
    found = await opened.readers.questions.find("aaaa")

    assert isinstance(found, Question)
    assert found.arguments == arguments
    assert found.args_sha == sha256_of(arguments)
    assert found.body == storable(question.body)


@pytest.mark.parametrize("text", TEXTS)
async def test_names_and_keys_of_any_text_are_kept_apart(opened: OpenStore, text: str) -> None:
    key = f"k{text[:200]}"
    first = await opened.store.enqueue(
        Enqueue(
            place=DM,
            group_key=key,
            parts=(Part(kind=DeliveryKind.TEXT, body="x"),),
            origin=Origin.SEND,
            note=text,
        )
    )
    again = await opened.store.enqueue(
        Enqueue(
            place=DM,
            group_key=key,
            parts=(Part(kind=DeliveryKind.TEXT, body="x"),),
            origin=Origin.SEND,
            note=text,
        )
    )

    assert (first.known, again.known) == (False, True)
    assert again.ids == first.ids
    assert [item.id for item in await opened.readers.deliveries.group(key)] == list(first.ids)
