"""What went wrong for people elsewhere, tried here: the adapter under the whole runtime."""

from pathlib import Path

import pytest

from tests.adapters.telegram.rig import TOKEN
from tests.adapters.telegram.test_flow import ADD, living
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.telegram import UNLIMITED, refuse, telegram_server
from tests.fakes.tools import FakeTools
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SHORTS = "SELECT short FROM question"
STATES = "SELECT state FROM question"


def gated() -> FakeTools:
    tools = FakeTools()
    tools.add(ADD, gated=True)
    return tools


def noting(text: str = "milk") -> ScriptedModel:
    return ScriptedModel([calls((ADD.alias, {"text": text})), says("Noted.")])


@requirement("case.t1")
async def test_a_stranger_who_taps_is_told_so_and_nothing_else_happens(tmp_path: Path) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        ana, eve = town.user(111, "Ana"), town.user(222, "Eve")
        chat = town.supergroup("Team", ana, eve, bot=town.bot(TOKEN), bot_status="administrator")
        async with living(tmp_path, town, noting(), tools):
            await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)
            shown = (card.text, card.labels)
            told = [await (await chat.press(label, by=eve)).answered() for label in card.labels]

            assert all("can decide this" in query.text for query in told)
            assert (card.text, card.labels) == shown
            assert town.count("editMessageText") == town.count("editMessageReplyMarkup") == 0
            assert rows(tmp_path / "state.db", STATES) == [("pending",)]
            assert tools.ran == []


@requirement("case.t3")
async def test_the_id_a_card_shows_is_the_one_that_decides(tmp_path: Path) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with living(tmp_path, town, noting(), tools):
            await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)
            ((short,),) = rows(tmp_path / "state.db", SHORTS)
            assert short in card.text
            await chat.say(f"/approve {short}")
            await chat.wait_for_reply("Noted.")

    assert [name for name, _ in tools.ran] == [ADD.name]


@requirement("case.t7")
async def test_an_answer_to_a_tap_that_comes_too_late_stops_neither_decision_nor_polling(
    tmp_path: Path,
) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        too_old = (
            "Bad Request: query is too old and response timeout expired or query ID is invalid"
        )
        town.fail(refuse("answerCallbackQuery", 400, too_old, times=9))
        async with living(tmp_path, town, noting(), tools):
            await chat.say("note milk")
            await chat.wait_for(lambda message: message.labels)
            await chat.press("Allow once")
            await chat.wait_for_reply("Noted.")
            await chat.say("still there?")
            await chat.wait_for_reply("echo: still there?")
            await town.until(lambda: not bot.pending)

    assert [name for name, _ in tools.ran] == [ADD.name]
    assert town.count("answerCallbackQuery", ok=False) > 0


@requirement("case.t20")
async def test_somebody_without_a_name_decides_nothing(tmp_path: Path) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        ana = town.user(111, "Ana")
        chat = town.supergroup("Team", ana, bot=town.bot(TOKEN), bot_status="administrator")
        async with living(tmp_path, town, noting(), tools):
            await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)
            ((short,),) = rows(tmp_path / "state.db", SHORTS)
            await chat.say_as_chat(f"/approve {short}", stand_in=False)
            await chat.say_as_chat(f"/approve {short}", stand_in=True)
            # By the time a later tap is answered, the commands before it were read.
            await (await chat.press("Deny")).answered()
            await town.until(lambda: not card.labels, what="the closed card")

            assert "Denied by Ana" in card.text
            assert tools.ran == []


@requirement("case.t21")
async def test_a_stranger_cannot_drive_the_bot_in_a_group_of_strangers(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with telegram_server(rates=UNLIMITED) as town:
        bot = town.bot(TOKEN)
        eve = town.user(222, "Eve")
        group = town.supergroup("Strangers", eve, bot=bot)
        private = town.private(town.user(111, "Ana"), bot=bot)
        async with living(tmp_path, town, model, FakeTools()):
            await group.say("@hermes_test_bot hi")
            await group.say("/status@hermes_test_bot")
            await private.say("hello")
            await private.wait_for_reply("echo: hello")

            assert group.replies == []
            assert len(model.requests) == 1
            assert rows(tmp_path / "state.db", "SELECT count(*) FROM turn") == [(1,)]
            assert rows(tmp_path / "state.db", "SELECT body FROM message WHERE role = 'user'") == [
                ("hello",)
            ]


@requirement("case.t28")
async def test_an_admin_is_one_in_a_group_too(tmp_path: Path) -> None:
    async with telegram_server(rates=UNLIMITED) as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        chat = town.supergroup("Team", ana, ben, bot=town.bot(TOKEN))
        admins = frozenset({"telegram:111"})
        async with living(tmp_path, town, ScriptedModel(), FakeTools(), admins=admins):
            await chat.say("/whoami@hermes_test_bot")
            who = await chat.wait_for_reply("telegram:111")
            assert "admin" in who.text
            await chat.say("/reload_mcp@hermes_test_bot", by=ben)
            await chat.say("/reload_mcp@hermes_test_bot")
            told = await chat.wait_for(lambda m: m.by_bot and m.id > who.id)

            assert "may not" not in told.text


async def test_a_tap_that_telegram_delivers_again_decides_once(tmp_path: Path) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with living(tmp_path, town, noting(), tools):
            await chat.say("note milk")
            await chat.wait_for(lambda message: message.labels)
            await chat.press("Allow once")
            await chat.wait_for_reply("Noted.")
            bot.redeliver(times=3)
            await chat.say("and now?")
            await chat.wait_for_reply("echo: and now?")
            await town.until(lambda: not bot.pending)
        bot.redeliver(last=2, times=1)
        async with living(tmp_path, town, ScriptedModel(), tools):
            await chat.say("after a restart")
            await chat.wait_for_reply("echo: after a restart")

    assert [name for name, _ in tools.ran] == [ADD.name]
    assert rows(tmp_path / "state.db", "SELECT count(*) FROM inbound WHERE kind = 'press'") == [
        (1,)
    ]
