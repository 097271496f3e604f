import asyncio

import pytest

from adapters.telegram.markup import TelegramRenderer
from gateway.domain.delivery import SentMessage
from gateway.domain.message import ButtonPressed, FormSubmitted, InboundMessage
from gateway.domain.question import Action, Button
from tests.adapters.telegram.rig import TOKEN, Rig, dm, group, rig, topic, unhurried
from tests.adapters.telegram.test_markup import view
from tests.fakes.telegram import ChatDriver, Fault, Message, Trouble, flood, refuse
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

RENDERER = TelegramRenderer()
ASKING = view(
    arguments="",
    reply_token="r" * 22,
    field="title",
    reply_hint="Text of at most 9 characters",
    buttons=(
        Button(token="s" * 22, action=Action.SKIP, label="Skip"),
        Button(token="c" * 22, action=Action.CANCEL, label="Cancel"),
    ),
)


async def ask(run: Rig, chat: ChatDriver, *, members: bool = False) -> tuple[Message, Message]:
    """Send a card that takes typed text; return it and the prompt below it."""
    place = group(chat.id) if members else dm(chat.id)
    await run.adapter.send(run.delivery(place, RENDERER.card(ASKING)[0]))
    card, prompt = chat.replies[-2:]
    return card, prompt


@requirement("elicitation.form.surfaces")
async def test_a_typed_field_keeps_its_buttons_and_opens_the_reply_field() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            card, prompt = await ask(run, chat)

            assert card.labels == ["Skip", "Cancel"]
            assert prompt.markup == {
                "force_reply": True,
                "input_field_placeholder": "Text of at most 9 characters",
            }
            assert prompt.text == "Your answer: Text of at most 9 characters"
            assert prompt.reply_to == card.id


@requirement("elicitation.form.surfaces")
async def test_a_reply_to_the_prompt_or_to_the_card_is_the_answer() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            card, prompt = await ask(run, chat)
            await chat.say("milk", reply_to=prompt)
            await chat.say("bread", reply_to=card)
            await chat.say("not an answer")
            await run.inbox.until(lambda: len(run.inbox.events) == 3)

            one, two, three = run.inbox.events
            assert isinstance(one, FormSubmitted)
            assert isinstance(two, FormSubmitted)
            assert isinstance(three, InboundMessage)
            assert (one.token, one.values) == ("r" * 22, {"title": "milk"})
            assert two.values == {"title": "bread"}
            assert one.interaction == ""


async def test_after_a_restart_the_answer_is_found_by_what_was_recorded() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        part = RENDERER.card(ASKING)[0]
        async with rig(town) as run:
            delivery = run.delivery(dm(), part)
            receipt = await run.adapter.send(delivery)
            card, prompt = chat.replies
            ledger = run.ledger
        assert receipt.native_id == f"{card.id}+{prompt.id}"
        ledger.sent.append(
            SentMessage(
                place=dm(), kind=part.kind, native_id=receipt.native_id, payload=part.payload
            )
        )
        async with rig(town, ledger=ledger) as run:
            await chat.say("milk", reply_to=prompt)
            await run.inbox.until(lambda: run.inbox.events)

            (event,) = run.inbox.events
            assert isinstance(event, FormSubmitted)
            assert event.values == {"title": "milk"}


async def test_an_answer_that_overtakes_the_receipt_of_its_card_still_counts() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(Fault(trouble=Trouble.SLOW, method="sendMessage", seconds=0.3, skip=1))
        async with rig(town) as run:
            sending = asyncio.create_task(
                run.adapter.send(run.delivery(dm(), RENDERER.card(ASKING)[0]))
            )
            card = await chat.wait_for(lambda message: message.labels)
            await chat.say("milk", reply_to=card)
            await run.inbox.until(lambda: run.inbox.events)
            await sending

            assert isinstance(run.inbox.events[0], FormSubmitted)


async def test_a_reply_to_another_message_of_ours_is_a_message() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await run.say(dm(), "hello")
            await chat.say("hi", reply_to=chat.replies[0])
            await run.inbox.until(lambda: run.inbox.events)

            (event,) = run.inbox.events
            assert isinstance(event, InboundMessage)
            assert event.reply_to == str(chat.replies[0].id)


async def test_in_a_group_only_the_person_asked_is_prompted() -> None:
    async with unhurried() as town:
        chat = town.supergroup("Team", town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            _, prompt = await ask(run, chat, members=True)

            assert prompt.markup is not None
            assert prompt.markup["selective"] is True
            mention = prompt.entities[0]
            assert (mention["type"], mention["user"]["id"]) == ("text_mention", 111)


async def test_a_prompt_that_is_refused_does_not_make_its_card_fail() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        refused = refuse("sendMessage", 400, "Bad Request: REPLY_MARKUP_INVALID")
        refused.skip = 1
        town.fail(refused)
        async with rig(town) as run:
            receipt = await run.adapter.send(run.delivery(dm(), RENDERER.card(ASKING)[0]))

            assert receipt.native_id == str(chat.replies[0].id)


@pytest.mark.parametrize(("seconds", "prompts"), [(2, 1), (60, 0)])
async def test_a_prompt_waits_a_moment_in_a_busy_chat_and_is_left_out_otherwise(
    seconds: int, prompts: int
) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(flood("sendMessage", seconds, skip=1))
        async with rig(town) as run:
            await run.adapter.send(run.delivery(dm(), RENDERER.card(ASKING)[0]))

            assert len(chat.replies) == 1 + prompts


async def test_a_closed_card_is_edited_by_its_own_message() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            receipt = await run.adapter.send(run.delivery(dm(), RENDERER.card(ASKING)[0]))
            edit = RENDERER.closed_card(view(buttons=(), closed="Cancelled by Ana"))
            await run.adapter.send(run.delivery(dm(), edit, edits=receipt.native_id))

            assert chat.replies[0].text.endswith("Cancelled by Ana")


async def test_a_press_on_a_message_that_is_gone_still_knows_its_topic() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        opened = await forum.open_topic("Plans")
        place = topic(forum.id, opened.topic or 0)
        async with rig(town) as run:
            await run.adapter.send(run.delivery(place, RENDERER.card(view())[0]))
            card = opened.replies[0]
            await opened.delete(card)
            await opened.press(data="v1:" + "d" * 22, message=card)
            await run.inbox.until(lambda: run.inbox.events)

            (event,) = run.inbox.events
            assert isinstance(event, ButtonPressed)
            assert event.place == place
