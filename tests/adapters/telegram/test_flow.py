"""What only Telegram has, under the whole runtime and a real store, against the test server."""

from pathlib import Path

import pytest

from tests.adapters.conformance.gateway import ADD, gated, living, noting
from tests.adapters.telegram.rig import TOKEN
from tests.fakes.telegram import Town, telegram_server
from tests.fakes.telegram.town import BotDriver
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SECOND = "654321:another-token-that-is-no-secret"


def telegram(town: Town, bot: BotDriver, **account: object) -> dict[str, object]:
    """The platform's section of the configuration, for Ana."""
    section = {"token": bot.token, "base_url": town.base_url, "allow_from": ["111"]}
    return {"telegram": {**section, **account}}


@requirement("platform.telegram.base_url")
async def test_at_the_pace_telegram_allows_a_group_is_answered_with_quotes_and_looks(
    tmp_path: Path,
) -> None:
    tools = gated()
    async with telegram_server() as town:
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        chat = town.supergroup("Team", ana, bot=bot, bot_status="administrator")
        section = telegram(town, bot, require_mention=False)
        async with living(tmp_path, section, noting(then="**Noted.**"), tools, paced=True):
            asked = await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)
            await (await chat.press("Allow once")).answered()
            reply = await chat.wait_for_reply("Noted.")
            await town.until(lambda: not card.labels, what="the closed card")

    assert reply.reply_to == asked.id
    assert [entity["type"] for entity in reply.entities] == ["bold"]
    assert [name for name, _ in tools.ran] == [ADD.name]
    assert not [call for call in town.calls if call.status == 429]


@requirement("case.t5", "platform.accounts")
async def test_a_card_of_one_bot_is_decided_by_a_press_that_reaches_that_bot(
    tmp_path: Path,
) -> None:
    tools = gated()
    async with telegram_server() as town:
        ana, first = town.user(111, "Ana"), town.bot(TOKEN)
        second = town.bot(SECOND, username="work_test_bot")
        other, chat = town.private(ana, bot=first), town.private(ana, bot=second)
        section = telegram(town, first, accounts={"work": {"token": second.token}})
        async with living(tmp_path, section, noting(), tools, paced=True):
            await chat.say("note milk")
            await chat.wait_for(lambda message: message.labels)
            await (await chat.press("Allow once")).answered()
            await chat.wait_for_reply("Noted.")

            assert [name for name, _ in tools.ran] == [ADD.name]
            assert other.replies == []
