"""What a chat shows of a reply while it is made, and of a message that waits."""

import pytest

from adapters.telegram.signs import WAITING
from adapters.telegram.traffic import GROUP_PREVIEW_SECONDS, PREVIEW_SECONDS, Traffic
from gateway.domain.delivery import Receipt
from gateway.domain.errors import AdapterError, DeliveryDeferred, DeliveryRejected, DeliveryUnsure
from gateway.domain.ids import Place, TurnId
from gateway.domain.preview import REMOVAL, Preview
from tests.adapters.telegram.rig import TOKEN, Rig, dm, group, rig, topic, unhurried
from tests.fakes.telegram import Fault, Trouble, flood, refuse, telegram_server
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def preview(place: Place, text: str, *, message: str | None = None, turn: int = 7) -> Preview:
    return Preview(place=place, turn=TurnId(turn), text=text, message=message)


async def opened(run: Rig, place: Place, text: str) -> Receipt:
    """Send the message that stands for a reply."""
    part = run.adapter.opening(preview(place, text))
    assert part is not None
    return await run.adapter.send(run.delivery(place, part))


@requirement("stream.as_generated")
async def test_a_private_chat_shows_a_draft_that_the_reply_replaces() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            assert run.adapter.opening(preview(dm(), "x")) is None
            await run.adapter.show_preview(preview(dm(), "It **gro"))
            first = chat.draft
            await run.adapter.show_preview(preview(dm(), "It **grows**"))
            second = chat.draft
            assert chat.replies == []
            await run.say(dm(), "It grows.")

            assert (first, second, chat.draft) == ("It **gro", "It grows", None)
            assert chat.texts == ["It grows."]
        ids = {call.values["draft_id"] for call in town.called("sendMessageDraft")}
        assert ids == {"7"}


@requirement("stream.as_generated", "design.reply.one_notification")
async def test_a_group_shows_a_silent_message_that_grows_and_is_taken_away() -> None:
    async with unhurried() as town:
        chat = town.supergroup("Home", town.user(111, "Ana"), bot=town.bot(TOKEN))
        place = group(chat.id)
        async with rig(town) as run:
            receipt = await opened(run, place, "It")
            (shown,) = chat.replies
            await run.adapter.show_preview(
                preview(place, "It **grows**", message=receipt.native_id)
            )
            assert (shown.text, shown.silent) == ("It grows", True)
            await run.say(place, "It grows.")
            removal = run.delivery(place, REMOVAL, edits=receipt.native_id)
            for _ in range(2):
                assert (await run.adapter.send(removal)).native_id == receipt.native_id

            (reply,) = chat.replies
            assert (reply.text, reply.silent) == ("It grows.", False)


async def test_a_message_that_may_not_be_taken_away_is_given_up() -> None:
    async with unhurried() as town:
        chat = town.supergroup("Home", town.user(111, "Ana"), bot=town.bot(TOKEN))
        place = group(chat.id)
        async with rig(town) as run:
            receipt = await opened(run, place, "It")
            town.fail(refuse("deleteMessage", 400, "Bad Request: message can't be deleted"))
            with pytest.raises(DeliveryRejected):
                await run.adapter.send(run.delivery(place, REMOVAL, edits=receipt.native_id))


async def test_a_topic_keeps_what_is_shown_to_itself() -> None:
    async with unhurried() as town:
        forum = town.supergroup("Forum", town.user(111, "Ana"), bot=town.bot(TOKEN), forum=True)
        plans = await forum.open_topic("Plans")
        place = topic(forum.id, plans.topic or 0)
        async with rig(town) as run:
            receipt = await opened(run, place, "It")
            await run.adapter.show_preview(preview(place, "It grows", message=receipt.native_id))

            assert plans.texts == ["It grows"]


@requirement("case.t8")
async def test_an_edit_that_changes_nothing_is_no_failure_and_what_follows_is_shown() -> None:
    async with unhurried() as town:
        chat = town.supergroup("Home", town.user(111, "Ana"), bot=town.bot(TOKEN))
        place = group(chat.id)
        async with rig(town) as run:
            receipt = await opened(run, place, "same")
            for text in ("same", "same", "same and more"):
                await run.adapter.show_preview(preview(place, text, message=receipt.native_id))

            assert chat.texts == ["same and more"]
        assert town.count("editMessageText", ok=False) == 2


@requirement("case.t14", "case.t13")
async def test_a_refusal_for_now_names_the_pause_and_sends_nothing() -> None:
    async with unhurried() as town:
        chat = town.supergroup("Home", town.user(111, "Ana"), bot=town.bot(TOKEN))
        place = group(chat.id)
        async with rig(town) as run:
            receipt = await opened(run, place, "It")
            town.fail(flood("editMessageText", 1000))
            with pytest.raises(DeliveryDeferred) as refused:
                await run.adapter.show_preview(
                    preview(place, "It grows", message=receipt.native_id)
                )

            assert refused.value.retry_after == 1000
            assert run.adapter.preview_wait(place) > 900
            assert not await run.adapter.show_waiting(place, "1")
        assert town.count("sendMessage") == 1


async def test_what_telegram_cannot_parse_is_shown_without_its_looks() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("sendMessageDraft", 400, "Bad Request: can't parse entities: bad offset"))
        async with rig(town) as run:
            await run.adapter.show_preview(preview(dm(), "**bold**"))

            assert chat.draft == "bold"


async def test_of_a_long_reply_the_end_is_shown() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        text = "\n".join(f"line {n} 👍" for n in range(2000))
        async with rig(town) as run:
            await run.adapter.show_preview(preview(dm(), text))

            assert chat.draft is not None
            assert chat.draft.endswith("line 1999 👍")
        assert town.service.violations == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refuse("sendMessageDraft", 400, "Bad Request: no"), DeliveryRejected),
        (Fault(trouble=Trouble.CUT_AFTER, method="sendMessageDraft"), DeliveryUnsure),
    ],
    ids=["refused", "no answer"],
)
async def test_what_cannot_be_shown_is_said_in_our_words(
    fault: Fault, error: type[AdapterError]
) -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(fault)
        async with rig(town) as run:
            with pytest.raises(error):
                await run.adapter.show_preview(preview(dm(), "x"))


async def test_a_server_without_drafts_gets_a_silent_message_from_the_next_reply_on() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("sendMessageDraft", 404, "Not Found"))
        async with rig(town) as run:
            with pytest.raises(DeliveryRejected):
                await run.adapter.show_preview(preview(dm(), "x"))
            receipt = await opened(run, dm(), "It")
            await run.adapter.show_preview(preview(dm(), "It grows", message=receipt.native_id))

            (shown,) = chat.replies
            assert (shown.text, shown.silent) == ("It grows", True)
        assert town.count("sendMessageDraft") == 1


async def test_words_that_nobody_would_see_open_with_a_sign() -> None:
    async with unhurried() as town:
        chat = town.supergroup("Home", town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await opened(run, group(chat.id), "\u200b")

            assert chat.texts == ["…"]


@requirement("case.t15", "delivery.cosmetic_shed")
@pytest.mark.parametrize("private", [True, False], ids=["private", "group"])
async def test_a_reply_that_grows_for_minutes_never_runs_into_the_limits(private: bool) -> None:
    async with telegram_server() as town:
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        chat = town.private(ana, bot=bot) if private else town.supergroup("Home", ana, bot=bot)
        place = dm() if private else group(chat.id)
        async with rig(town) as run:
            message = None if private else (await opened(run, place, "0")).native_id
            for n in range(1, 40):
                wait = run.adapter.preview_wait(place)
                run.clock.advance(wait)
                town.advance(wait)
                await run.adapter.show_preview(preview(place, str(n), message=message))
            await run.say(place, "done")

            assert chat.texts[-1] == "done"
        refused = [call.method for call in town.calls if call.status == 429]
        assert refused == []


# --- marks --------------------------------------------------------------------------------


@requirement("busy.queue_acknowledged")
async def test_a_message_that_waits_gets_a_mark() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with rig(town) as run:
            said = await chat.say("and another thing")

            assert await run.adapter.show_waiting(dm(), str(said.id))
            assert said.reactions[bot.state.id] == [WAITING]


async def test_where_no_mark_can_be_set_that_is_said() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            said = await chat.say("and another thing")
            town.fail(refuse("setMessageReaction", 400, "Bad Request: REACTION_INVALID"))

            assert not await run.adapter.show_waiting(dm(), str(said.id))
            assert not await run.adapter.show_waiting(dm(), "12.34")
            assert said.reactions == {}


# --- pace ---------------------------------------------------------------------------------


@requirement("delivery.cosmetic_shed")
@pytest.mark.parametrize(
    ("chat", "pace"), [("111", PREVIEW_SECONDS), ("-1001", GROUP_PREVIEW_SECONDS)]
)
def test_previews_keep_a_pace_and_stand_for_typing(chat: str, pace: float) -> None:
    clock = ManualClock()
    traffic = Traffic(clock.monotonic)

    assert traffic.preview_wait(chat) == 0
    traffic.note_preview(chat)
    assert traffic.preview_wait(chat) == pace
    assert traffic.preview_wait("999") == 0
    assert not traffic.may_type(chat)
    clock.advance(pace)
    assert traffic.preview_wait(chat) == 0


@requirement("delivery.cosmetic_shed", "case.t15")
@pytest.mark.parametrize(("chat", "most"), [("111", 60), ("-1001", 20)])
def test_previews_leave_half_of_what_a_chat_takes_to_what_must_be_sent(
    chat: str, most: int
) -> None:
    clock = ManualClock()
    traffic = Traffic(clock.monotonic)
    shown = 0
    while clock.monotonic() < 60:
        if wait := traffic.preview_wait(chat):
            clock.advance(min(wait, 60 - clock.monotonic()))
            continue
        traffic.note_preview(chat)
        traffic.note(chat)
        shown += 1

    assert shown <= most // 2
    assert traffic.wait(chat) == 0
