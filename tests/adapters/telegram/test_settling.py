import json

import pytest

from adapters.telegram.markup import TelegramRenderer
from gateway.domain.delivery import Delivery, DeliveryKind, Part
from gateway.domain.errors import DeliveryUnsure
from gateway.domain.ids import Place
from tests.adapters.telegram.rig import TOKEN, Rig, dm, group, rig, topic, unhurried
from tests.adapters.telegram.test_markup import view
from tests.fakes.telegram import ChatDriver, Fault, Trouble, flood, refuse
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

RENDERER = TelegramRenderer()
LOST_AFTER = Fault(trouble=Trouble.CUT_AFTER, method="sendMessage")


async def lose(run: Rig, place: Place, part: Part, *, arrives: bool) -> Delivery:
    """Send a part whose answer never comes."""
    trouble = Trouble.CUT_AFTER if arrives else Trouble.CUT_BEFORE
    method = "sendDocument" if part.kind is DeliveryKind.FILE else "sendMessage"
    run.town.fail(Fault(trouble=trouble, method=method))
    delivery = run.delivery(place, part)
    with pytest.raises(DeliveryUnsure):
        await run.adapter.send(delivery)
    return delivery


async def start(run: Rig, chat: ChatDriver, text: str = "hello") -> None:
    """Let somebody write, so that an id before the send is known."""
    said = await chat.say(text)
    await run.inbox.until(lambda: run.inbox.events)
    await run.town.until(lambda: not run.town.bot(TOKEN).pending)
    run.account_for(chat.id, said.id)


def text_of(markdown: str) -> Part:
    (part,) = RENDERER.text(markdown)
    return part


@requirement("design.delivery.telegram_probe", "fault.f6")
async def test_a_message_that_arrived_is_found_and_left_as_it_is() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            delivery = await lose(run, dm(), text_of("**done**"), arrives=True)

            receipt = await run.adapter.settle_unsure(delivery)

            (shown,) = chat.replies
            assert receipt is not None
            assert receipt.native_id == str(shown.id)
            assert shown.edit_date is None


@requirement("design.delivery.telegram_probe", "fault.f6")
async def test_a_message_that_did_not_arrive_is_said_not_to_have() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            delivery = await lose(run, dm(), text_of("done"), arrives=False)

            assert await run.adapter.settle_unsure(delivery) is None
            assert town.count("editMessageText") <= 3


async def test_messages_that_came_meanwhile_do_not_hide_it() -> None:
    async with unhurried() as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        chat = town.private(ana, bot=town.bot(TOKEN))
        other = town.private(ben, bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            await other.say("unseen by the ledger")
            delivery = await lose(run, dm(), text_of("done"), arrives=True)
            for word in ("one", "two"):
                await chat.say(word)
                await other.say(word)
            await town.until(lambda: not town.bot(TOKEN).pending)

            receipt = await run.adapter.settle_unsure(delivery)

            assert receipt is not None
            assert receipt.native_id == str(chat.replies[0].id)
            assert town.count("editMessageText") == 1


async def test_a_send_of_another_chat_is_never_taken_for_it() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        other = town.private(town.user(222, "Ben"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            run.ledger.unsettled = 2
            await start(run, chat)
            foreign = await lose(run, dm(222), text_of("for Ben"), arrives=True)
            delivery = await lose(run, dm(), text_of("for Ana"), arrives=False)

            assert await run.adapter.settle_unsure(delivery) is None
            receipt = await run.adapter.settle_unsure(foreign)

            assert receipt is not None
            assert other.texts == ["for Ben"]
            assert chat.texts == []


async def test_a_card_that_arrived_is_found_with_its_buttons() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            card, _ = RENDERER.card(view())
            delivery = await lose(run, dm(), card, arrives=True)

            receipt = await run.adapter.settle_unsure(delivery)

            assert receipt is not None
            assert chat.replies[0].labels[0] == "Allow once"
            assert chat.replies[0].edit_date is None


async def test_a_file_is_found_by_its_name_and_never_mistaken_for_another() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            long = json.dumps({"text": "x" * 2000})
            _, one = RENDERER.card(view(arguments=long, short="aaaa"))
            _, two = RENDERER.card(view(arguments=long, short="bbbb"))
            assert one is not None
            assert two is not None
            first = await lose(run, dm(), one, arrives=False)
            await lose(run, dm(), two, arrives=True)

            assert await run.adapter.settle_unsure(first) is None
            assert len(chat.replies) == 1


async def test_the_file_that_arrived_is_adopted() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            _, file = RENDERER.card(view(arguments=json.dumps({"text": "x" * 2000})))
            assert file is not None
            delivery = await lose(run, dm(), file, arrives=True)

            receipt = await run.adapter.settle_unsure(delivery)

            assert receipt is not None
            assert receipt.native_id == str(chat.replies[0].id)


async def test_what_was_sent_plain_is_found_although_its_looks_are_refused() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            town.fail(refuse("sendMessage", 400, "Bad Request: can't parse entities"), LOST_AFTER)
            delivery = run.delivery(dm(), text_of("**done**"))
            with pytest.raises(DeliveryUnsure):
                await run.adapter.send(delivery)
            town.fail(refuse("editMessageText", 400, "Bad Request: can't parse entities"))

            receipt = await run.adapter.settle_unsure(delivery)

            assert receipt is not None
            assert chat.texts == ["done"]


async def test_a_supergroup_is_walked_through_to_its_end() -> None:
    async with unhurried() as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        chat = town.supergroup("Team", ana, ben, bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat, "/help")
            for _ in range(3):
                await chat.say("not for the bot", by=ben)
            arrived = await lose(run, group(chat.id), text_of("done"), arrives=True)
            receipt = await run.adapter.settle_unsure(arrived)
            assert receipt is not None
            assert receipt.native_id == str(chat.replies[0].id)

            lost = await lose(run, group(chat.id), text_of("gone"), arrives=False)
            run.account_for(chat.id, int(receipt.native_id))
            assert await run.adapter.settle_unsure(lost) is None


@requirement("design.delivery.telegram_probe", "fault.f6")
async def test_beyond_twenty_messages_it_cannot_be_found_out() -> None:
    async with unhurried() as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        chat = town.supergroup("Team", ana, ben, bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat, "/help")
            for _ in range(30):
                await chat.say("not for the bot", by=ben)
            delivery = await lose(run, group(chat.id), text_of("done"), arrives=True)

            with pytest.raises(DeliveryUnsure):
                await run.adapter.settle_unsure(delivery)
            assert town.count("editMessageText") == 20


async def test_with_groups_that_it_does_not_hear_whole_nothing_is_certain() -> None:
    async with unhurried() as town:
        ana = town.user(111, "Ana")
        chat = town.private(ana, bot=town.bot(TOKEN))
        small = town.group("Small", ana, bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            run.account_for(small.id, 1)
            for _ in range(30):
                await small.say("not for the bot")
            delivery = await lose(run, dm(), text_of("done"), arrives=True)

            with pytest.raises(DeliveryUnsure):
                await run.adapter.settle_unsure(delivery)


async def test_without_any_id_before_it_nothing_can_be_found_out() -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            delivery = await lose(run, dm(), text_of("done"), arrives=True)

            with pytest.raises(DeliveryUnsure):
                await run.adapter.settle_unsure(delivery)


async def test_the_backlog_is_read_before_anything_is_tried() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with rig(town) as run:
            await start(run, chat)
            delivery = await lose(run, dm(), text_of("done"), arrives=True)
            ledger = run.ledger
        for number in range(150):
            await chat.say(str(number))
        async with rig(town, connected=False, ledger=ledger) as run:
            receipt = await run.adapter.settle_unsure(delivery)

            assert receipt is not None
            assert town.count("editMessageText") == 1


async def test_a_service_that_is_away_is_asked_again() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            delivery = await lose(run, dm(), text_of("done"), arrives=True)
            cut = Fault(trouble=Trouble.CUT_BEFORE, method="editMessageText", times=2)
            town.fail(cut, flood("editMessageText", 3))

            receipt = await run.adapter.settle_unsure(delivery)

            assert receipt is not None
            assert 3 in run.clock.slept


async def test_a_service_that_stays_away_leaves_it_open() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await start(run, chat)
            delivery = await lose(run, dm(), text_of("done"), arrives=True)
            town.fail(flood("editMessageText", 3600))

            with pytest.raises(DeliveryUnsure):
                await run.adapter.settle_unsure(delivery)


async def test_an_edit_may_simply_be_made_again() -> None:
    async with unhurried() as town, rig(town) as run:
        edit = run.delivery(dm(), Part(kind=DeliveryKind.EDIT, body="x"), edits="5")

        assert await run.adapter.settle_unsure(edit) is None


async def test_a_message_of_another_topic_is_not_adopted() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        one, two = await forum.open_topic("One"), await forum.open_topic("Two")
        async with rig(town) as run:
            await start(run, one, "/help")
            other = topic(forum.id, two.topic or 0)
            foreign = await lose(run, other, text_of("for two"), arrives=True)
            place = topic(forum.id, one.topic or 0)
            delivery = await lose(run, place, text_of("for one"), arrives=False)

            assert await run.adapter.settle_unsure(delivery) is None
            receipt = await run.adapter.settle_unsure(foreign)

            assert receipt is not None
            assert two.texts == ["for two"]
