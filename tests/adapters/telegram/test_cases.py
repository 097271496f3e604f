"""What went wrong for people elsewhere on Telegram, tried here under the whole runtime."""

from pathlib import Path

import pytest

from gateway.runtime.config import AccessConfig
from tests.adapters.conformance.gateway import ADD, UNHURRIED, gated, living, noting
from tests.adapters.telegram.rig import TOKEN
from tests.adapters.telegram.test_flow import telegram
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel
from tests.fakes.telegram import UNLIMITED, refuse, telegram_server
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SHORTS = "SELECT short FROM question"
TOO_OLD = "Bad Request: query is too old and response timeout expired or query ID is invalid"


@requirement("case.t7")
async def test_an_answer_to_a_tap_that_comes_too_late_stops_neither_decision_nor_polling(
    tmp_path: Path,
) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        town.fail(refuse("answerCallbackQuery", 400, TOO_OLD, times=9))
        async with living(tmp_path, telegram(town, bot), noting(), tools):
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
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        chat = town.supergroup("Team", ana, bot=bot, bot_status="administrator")
        section = telegram(town, bot, groups=[chat.id], require_mention=False)
        async with living(tmp_path, section, noting(), tools):
            await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)
            ((short,),) = rows(tmp_path / "state.db", SHORTS)
            for stand_in in (False, True):
                tried = await chat.say_as_chat(f"/approve {short}", stand_in=stand_in)
                told = await chat.wait_for(lambda m, tried=tried: m.by_bot and m.id > tried.id)
                assert "can decide this" in told.text
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
        async with living(tmp_path, telegram(town, bot), model):
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


@requirement("case.t23")
async def test_a_command_that_names_the_bot_is_its_own_and_one_that_names_another_is_not(
    tmp_path: Path,
) -> None:
    async with telegram_server(rates=UNLIMITED) as town:
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        chat = town.supergroup("Team", ana, bot=bot, bot_status="administrator")
        # All of it waits for the start.
        for text in ("/new@hermes_test_bot", "/new@otherbot", "/whoami@hermes_test_bot"):
            await chat.say(text)
        async with living(tmp_path, telegram(town, bot), ScriptedModel()):
            await chat.wait_for_reply("telegram:111")
            await town.until(lambda: not bot.pending)

    assert len(chat.replies) == 2
    assert rows(tmp_path / "state.db", "SELECT count(*) FROM inbound WHERE kind = 'command'") == [
        (2,)
    ]


@requirement("case.t28")
async def test_an_admin_is_one_in_a_group_too(tmp_path: Path) -> None:
    async with telegram_server(rates=UNLIMITED) as town:
        ana, ben, bot = town.user(111, "Ana"), town.user(222, "Ben"), town.bot(TOKEN)
        chat = town.supergroup("Team", ana, ben, bot=bot)
        access = AccessConfig(admins=frozenset({"telegram:111"}), rate=UNHURRIED)
        section = telegram(town, bot, groups=[chat.id])
        async with living(tmp_path, section, ScriptedModel(), access=access):
            await chat.say("/whoami@hermes_test_bot")
            who = await chat.wait_for_reply("telegram:111")
            assert "admin" in who.text
            await chat.say("/reload_mcp@hermes_test_bot", by=ben)
            told = await chat.wait_for(lambda m: m.by_bot and m.id > who.id)
            assert "may not" in told.text
            await chat.say("/reload_mcp@hermes_test_bot")
            done = await chat.wait_for(lambda m: m.by_bot and m.id > told.id)

            assert "may not" not in done.text
