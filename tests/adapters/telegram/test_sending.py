import json

import pytest

from adapters.telegram.config import ReplyTo
from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.traffic import GROUP_CALLS
from gateway.domain.delivery import DeliveryKind, Mark, Part
from gateway.domain.errors import (
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
)
from gateway.domain.health import HealthState
from tests.adapters.telegram.rig import TOKEN, dm, group, rig, topic, unhurried
from tests.adapters.telegram.test_markup import view
from tests.fakes.telegram import Fault, Trouble, flood, refuse
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

RENDERER = TelegramRenderer()


def text_of(markdown: str) -> Part:
    (part,) = RENDERER.text(markdown)
    return part


async def test_a_reply_is_sent_with_its_looks_and_without_a_preview() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            part = text_of("**bold** https://x.example")
            receipt = await run.adapter.send(run.delivery(dm(), part))

            (shown,) = chat.replies
            assert receipt.native_id == str(shown.id)
            assert shown.text == "bold https://x.example"
            assert {"type": "bold", "offset": 0, "length": 4} in shown.entities
            assert shown.preview == {"is_disabled": True}


@requirement("case.f4")
async def test_a_piece_telegram_cannot_parse_is_sent_once_more_as_plain_text() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("sendMessage", 400, "Bad Request: can't parse entities: bad offset"))
        async with rig(town) as run:
            receipt = await run.adapter.send(run.delivery(dm(), text_of("**bold**")))

            assert chat.texts == ["bold"]
            assert chat.replies[0].entities == []
            assert receipt.marks == {Mark.PLAIN}

        town.fail(refuse("sendMessage", 400, "Bad Request: can't parse entities", times=2))
        async with rig(town) as run:
            with pytest.raises(DeliveryRejected):
                await run.adapter.send(run.delivery(dm(), text_of("**bold**")))
        assert town.count("sendMessage") == 4


@requirement("case.t19")
async def test_a_reply_whose_topic_is_gone_moves_to_the_main_chat_and_says_so() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        opened = await forum.open_topic("Plans")
        place = topic(forum.id, opened.topic or 0)
        await opened.delete_topic()
        async with rig(town) as run:
            receipt = await run.adapter.send(run.delivery(place, text_of("**done**")))

            (shown,) = forum.replies
            assert shown.text == "(its topic is gone)\ndone"
            assert receipt.marks == {Mark.MOVED}


@requirement("case.t19")
async def test_what_belongs_to_a_question_never_moves_to_the_main_chat() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        opened = await forum.open_topic("Plans")
        place = topic(forum.id, opened.topic or 0)
        await opened.delete_topic()
        card, file = RENDERER.card(view(arguments=json.dumps({"text": "x" * 3000})))
        async with rig(town) as run:
            for part in (card, file):
                assert part is not None
                with pytest.raises(DeliveryRejected):
                    await run.adapter.send(run.delivery(place, part))

            assert forum.replies == []


async def test_the_general_topic_is_not_named_in_a_send() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        async with rig(town) as run:
            await run.say(topic(forum.id, "1"), "hello")

            assert forum.texts == ["hello"]


@pytest.mark.parametrize(
    ("setting", "quoted"), [(ReplyTo.OFF, 0), (ReplyTo.FIRST, 1), (ReplyTo.ALL, 2)]
)
async def test_replies_quote_what_they_answer_as_configured(setting: ReplyTo, quoted: int) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        asked = await chat.say("question")
        async with rig(town, reply_to=setting) as run:
            for part in RENDERER.text("word " * 1000):
                delivery = run.delivery(dm(), part)
                run.ledger.answers[delivery.id] = str(asked.id)
                await run.adapter.send(delivery)

            assert [message.reply_to for message in chat.replies].count(asked.id) == quoted


async def test_a_deleted_question_does_not_stop_its_answer() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        asked = await chat.say("question")
        await chat.delete(asked)
        async with rig(town) as run:
            delivery = run.delivery(dm(), text_of("answer"))
            run.ledger.answers[delivery.id] = str(asked.id)
            await run.adapter.send(delivery)

            assert chat.texts == ["answer"]


@requirement("delivery.unknown_outcome")
async def test_what_may_be_a_repeat_says_so_above_the_text() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await run.adapter.send(run.delivery(dm(), text_of("**bold**"), repeat=True))

            (shown,) = chat.replies
            assert shown.text == "(sent again: the first time may have arrived)\nbold"
            assert {"type": "bold", "offset": 46, "length": 4} in shown.entities


# --- cards ------------------------------------------------------------------------


@requirement("case.t6")
async def test_a_card_has_buttons_telegram_takes_and_is_closed_by_an_edit() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            card, _ = RENDERER.card(view())
            receipt = await run.adapter.send(run.delivery(dm(), card))
            (shown,) = chat.replies
            assert shown.labels == ["Allow once", "Allow for this session", "Always allow", "Deny"]
            assert shown.data_of("Deny") == "v1:" + "d" * 22

            edit = RENDERER.closed_card(view(buttons=(), closed="Denied by Ana"))
            await run.adapter.send(run.delivery(dm(), edit, edits=receipt.native_id))

            (shown,) = chat.replies
            assert shown.labels == []
            assert shown.text.endswith("Denied by Ana")


async def test_long_arguments_are_uploaded_under_their_name() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        arguments = json.dumps({"text": "x\u00e9" * 3000}, ensure_ascii=False)
        _, file = RENDERER.card(view(arguments=arguments))
        assert file is not None
        async with rig(town) as run:
            receipt = await run.adapter.send(run.delivery(dm(), file))

            (shown,) = chat.replies
            assert receipt.native_id == str(shown.id)
            assert shown.media["document"]["file_name"] == "call-k7q2.json"
            (stored,) = town.service.world.files.values()
            assert stored.data.decode() == arguments


@requirement("case.t8")
async def test_an_edit_that_changes_nothing_succeeded() -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            receipt = await run.say(dm(), "done")
            edit = Part(kind=DeliveryKind.EDIT, body="done")

            again = await run.adapter.send(run.delivery(dm(), edit, edits=receipt.native_id))

            assert again.native_id == receipt.native_id
            assert town.called("editMessageText")[0].status == 400


@requirement("case.t14")
async def test_a_flood_refused_edit_waits_and_never_becomes_a_send() -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            receipt = await run.say(dm(), "one")
            town.fail(flood("editMessageText", 30))
            edit = Part(kind=DeliveryKind.EDIT, body="two")
            with pytest.raises(DeliveryDeferred) as refused:
                await run.adapter.send(run.delivery(dm(), edit, edits=receipt.native_id))

            assert refused.value.retry_after == 30
            assert town.count("sendMessage") == 1


@pytest.mark.parametrize("edits", ["999", "no id", None])
async def test_an_edit_of_what_is_not_there_is_given_up(edits: str | None) -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            edit = Part(kind=DeliveryKind.EDIT, body="two")
            with pytest.raises(DeliveryRejected):
                await run.adapter.send(run.delivery(dm(), edit, edits=edits))


# --- refusals ---------------------------------------------------------------------


@requirement("fault.f21", "case.t13")
@pytest.mark.parametrize("seconds", [1, 30, 1000])
async def test_a_flood_refusal_is_put_off_for_as_long_as_telegram_says(seconds: int) -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        ben = town.private(town.user(222, "Ben"), bot=town.bot(TOKEN))
        town.fail(flood("sendMessage", seconds, chat=111))
        async with rig(town) as run:
            with pytest.raises(DeliveryDeferred) as refused:
                await run.say(dm(), "one")
            await run.say(dm(222), "two")
            await run.adapter.show_typing(dm())

            assert refused.value.retry_after == seconds
            assert ben.texts == ["two"]
            assert run.clock.slept == []
            assert town.count("sendChatAction") == 0


@requirement("fault.f23")
async def test_a_blocked_bot_is_refused_for_good() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        await chat.block()
        async with rig(town) as run:
            with pytest.raises(DeliveryRejected, match="blocked by the user"):
                await run.say(dm(), "one")


@requirement("fault.f23")
async def test_a_send_to_a_group_that_moved_follows_it() -> None:
    async with unhurried() as town:
        chat = town.group("Team", town.user(111, "Ana"), bot=town.bot(TOKEN))
        moved = await chat.migrate()
        async with rig(town) as run:
            with pytest.raises(DeliveryDeferred):
                await run.say(group(chat.id), "one")

            assert (str(chat.id), str(moved.id)) in run.ledger.moved


@requirement("fault.f22")
@pytest.mark.parametrize(
    "fault",
    [
        Fault(trouble=Trouble.CUT_AFTER, method="sendMessage"),
        Fault(trouble=Trouble.CUT_ANSWER, method="sendMessage"),
        Fault(trouble=Trouble.PAGE, method="sendMessage", status=502),
        refuse("sendMessage", 500, "Internal Server Error"),
    ],
)
async def test_a_send_without_a_clear_answer_may_have_arrived(fault: Fault) -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(fault)
        async with rig(town) as run:
            with pytest.raises(DeliveryUnsure) as unsure:
                await run.say(dm(), "one")

            assert TOKEN not in str(unsure.value)


@requirement("fault.f22")
async def test_a_send_that_never_left_is_put_off_and_not_doubted() -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await town.down()
            with pytest.raises(DeliveryDeferred):
                await run.say(dm(), "one")
            await town.up()


async def test_a_token_that_was_revoked_is_said_to_the_outbox() -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("sendMessage", 401, "Unauthorized"))
        async with rig(town) as run:
            with pytest.raises(AdapterUnauthorized):
                await run.say(dm(), "one")

            assert run.adapter.health.state is HealthState.CONNECTED


# --- presses, typing, traffic -----------------------------------------------------


async def test_a_press_is_answered_to_the_presser_alone() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            card, _ = RENDERER.card(view())
            await run.adapter.send(run.delivery(dm(), card))
            press = await chat.press("Deny")

            await run.adapter.answer_press(dm(), press.query.id, "Only Ana can decide this. " * 20)

            assert len((await press.answered()).text) == 200


@requirement("case.t7")
async def test_a_press_that_can_no_longer_be_answered_raises_nothing() -> None:
    async with unhurried() as town, rig(town) as run:
        await run.adapter.answer_press(dm(), "17", "Too late")
        await town.down()
        await run.adapter.answer_press(dm(), "17", "Too late")
        await town.up()


@requirement("typing.while_running")
async def test_typing_is_shown_where_the_conversation_is() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        opened = await forum.open_topic("Plans")
        async with rig(town) as run:
            await run.adapter.show_typing(topic(forum.id, opened.topic or 0))

            assert [(a.action, a.thread) for a in forum.state.actions] == [("typing", opened.topic)]


@requirement("case.t15", "delivery.cosmetic_shed")
async def test_all_topics_of_a_chat_share_one_budget_and_typing_gives_way_first() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        topics = [await forum.open_topic(name) for name in "abcde"]
        async with rig(town) as run:
            deferred: list[float] = []
            for _ in range(10):
                for opened in topics:
                    place = topic(forum.id, opened.topic or 0)
                    await run.adapter.show_typing(place)
                    try:
                        await run.say(place, "hello")
                    except DeliveryDeferred as error:
                        deferred.append(error.retry_after)
                    run.clock.advance(1)

            calls = [c for c in town.calls if c.chat == forum.id]
            typing = [c for c in calls if c.method == "sendChatAction"]
            assert len(calls) == GROUP_CALLS
            assert 0 < len(typing) < GROUP_CALLS / 2
            assert deferred
            assert all(0 < seconds <= 60 for seconds in deferred)
