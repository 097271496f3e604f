"""Chats that only Telegram has: topics with one person, channels, and people who write as their group."""

from pathlib import Path

import pytest

from tests.adapters.conformance.gateway import ADD, gated, living, noting
from tests.adapters.telegram.rig import TOKEN
from tests.adapters.telegram.test_flow import telegram
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel, SlowModel
from tests.fakes.telegram import UNLIMITED, Town, telegram_server
from tests.fakes.telegram.town import BotDriver
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

KEYS = "SELECT session_key FROM conversation ORDER BY session_key"


def bot_with_topics(town: Town) -> BotDriver:
    """Return a bot whose chats may have topics; other messages came before."""
    bot = town.bot(TOKEN, topics_in_private=True)
    bot.state.last_message = 40
    return bot


def keys(home: Path) -> list[str]:
    return [key for (key,) in rows(home / "state.db", KEYS)]


@requirement("conversation.participant")
async def test_topics_of_a_private_chat_are_conversations_answered_inside(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with telegram_server(rates=UNLIMITED) as town:
        bot = bot_with_topics(town)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with living(tmp_path, telegram(town, bot), model):
            plans, costs = await chat.open_topic("Plans"), await chat.open_topic("Costs")
            for topic, words in ((plans, "red"), (costs, "green")):
                await topic.say(words)
                await topic.wait_for_reply(words)
            await chat.say("blue")
            await chat.wait_for(lambda m: m.by_bot and m.thread is None and "blue" in m.text)

    assert keys(tmp_path) == [
        "agent:main:telegram:dm:111",
        f"agent:main:telegram:topic:111:{plans.topic}",
        f"agent:main:telegram:topic:111:{costs.topic}",
    ]
    assert [len(topic.replies) for topic in (plans, costs)] == [1, 1]
    assert "red" not in "".join(m.text for m in model.requests[1].history)


async def test_a_card_in_a_topic_of_a_private_chat_is_decided_there(tmp_path: Path) -> None:
    tools = gated()
    async with telegram_server(rates=UNLIMITED) as town:
        bot = bot_with_topics(town)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with living(tmp_path, telegram(town, bot), noting(), tools):
            topic = await chat.open_topic("Plans")
            await topic.say("note milk")
            card = await topic.wait_for(lambda message: message.labels)
            await (await topic.press("Allow once")).answered()
            await topic.wait_for_reply("Noted.")
            await town.until(lambda: not card.labels, what="the closed card")

    assert [name for name, _ in tools.ran] == [ADD.name]
    assert {message.thread for message in chat.replies} == {topic.topic}


@requirement("access.pairing.code")
async def test_a_stranger_gets_a_code_in_a_topic_of_a_private_chat_too(tmp_path: Path) -> None:
    async with telegram_server(rates=UNLIMITED) as town:
        bot = bot_with_topics(town)
        chat = town.private(town.user(222, "Ben"), bot=bot)
        section = telegram(town, bot, dm_policy="pair")
        async with living(tmp_path, section, ScriptedModel()):
            topic = await chat.open_topic("Hello")
            await topic.say("let me in")
            offer = await topic.wait_for_reply("pairing code")

    assert offer.thread == topic.topic


@requirement("case.t20", "access.admission")
async def test_a_post_of_a_listed_channel_is_answered_there_and_one_of_another_is_not(
    tmp_path: Path,
) -> None:
    async with telegram_server(rates=UNLIMITED) as town:
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        ours, other = (town.channel(name, ana, bot=bot) for name in ("News", "Gossip"))
        async with living(tmp_path, telegram(town, bot, groups=[ours.id]), ScriptedModel()):
            await other.say_as_chat("@hermes_test_bot hello")
            await ours.say_as_chat("hello everybody")
            await ours.say_as_chat("@hermes_test_bot hello")
            await ours.wait_for_reply("hello")
            await town.until(lambda: not bot.pending)

    assert (len(ours.replies), other.replies) == (1, [])
    assert keys(tmp_path) == [f"agent:main:telegram:channel:{ours.id}:{ours.id}"]


@requirement("fault.f27")
async def test_a_channel_post_and_an_anonymous_message_are_read_as_they_were_changed_to(
    tmp_path: Path,
) -> None:
    model = SlowModel()
    async with telegram_server(rates=UNLIMITED) as town:
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        channel = town.channel("News", ana, bot=bot)
        group = town.supergroup("Team", ana, bot=bot, bot_status="administrator")
        section = telegram(town, bot, groups=[channel.id, group.id], require_mention=False)
        async with living(tmp_path, section, model):
            for number, chat in enumerate((channel, group)):
                await chat.say_as_chat("first")
                await model.asked.acquire()
                second = await chat.say_as_chat("secnod")
                await town.until(lambda: not bot.pending)
                await chat.edit(second, "second")
                await town.until(lambda: not bot.pending)
                model.gate.release()
                await model.asked.acquire()
                model.gate.release()
                await chat.wait_for_reply("second")

                assert model.users(2 * number + 1)[-1].endswith("second")
    assert len(model.requests) == 4


async def test_a_message_that_only_a_change_addresses_to_the_bot_starts_nothing(
    tmp_path: Path,
) -> None:
    async with telegram_server(rates=UNLIMITED) as town:
        ana, bot = town.user(111, "Ana"), town.bot(TOKEN)
        group = town.supergroup("Team", ana, bot=bot, bot_status="administrator")
        async with living(tmp_path, telegram(town, bot), ScriptedModel()):
            said = await group.say("hello")
            await group.edit(said, "@hermes_test_bot hello")
            await group.say("@hermes_test_bot really")
            await group.wait_for_reply("really")
            await town.until(lambda: not bot.pending)

    assert len(group.replies) == 1
