import asyncio
import logging
from typing import Any

import pytest

from adapters.telegram.adapter import Setting
from adapters.telegram.menu import Menu
from gateway.domain.errors import StoreBusy
from gateway.domain.health import Health, HealthState
from gateway.domain.message import ButtonPressed, CommandGiven, InboundMessage
from tests.adapters.telegram.rig import TOKEN, account, rig, unhurried
from tests.fakes.telegram import Fault, Trouble, conflict, flood, refuse
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("intake.before_ack", "fault.f1")
async def test_telegram_is_told_that_a_message_arrived_only_after_it_is_stored() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with rig(town) as run:
            run.inbox.gate.clear()
            await chat.say("hello")
            polls = town.count("getUpdates")
            await town.until(lambda: town.called("getUpdates")[-1].status == 200)
            await asyncio.sleep(0)

            assert town.count("getUpdates") == polls
            assert len(bot.pending) == 1

            run.inbox.gate.set()
            await town.until(lambda: not bot.pending)
            assert run.inbox.texts == ["hello"]


@requirement("fault.f14")
async def test_what_the_store_cannot_take_is_given_again_in_its_order() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        for word in ("one", "two", "three", "four"):
            await chat.say(word)
        async with rig(town, connected=False) as run:
            run.inbox.failures = [StoreBusy("disk full")] * 5
            await town.until(lambda: not bot.pending)

            assert run.inbox.texts == ["one", "two", "three", "four"]
            assert run.inbox.positions == [("offset", "100005")]
            assert run.adapter.health.state is HealthState.CONNECTED


async def test_a_store_that_cannot_write_is_shown_as_degraded() -> None:
    told: list[Health] = []
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town, setting=Setting(on_health=told.append)) as run:
            run.inbox.failures = [StoreBusy("locked")]
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)

    assert [(health.state, health.reason) for health in told[:2]] == [
        (HealthState.CONNECTED, ""),
        (HealthState.DEGRADED, "the store cannot write now: locked"),
    ]


@requirement("intake.backlog.never_dropped", "case.t23")
async def test_what_waited_while_we_were_away_is_read_in_order() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        for number in range(250):
            await chat.say(f"{number}")
        async with rig(town) as run:
            await run.inbox.until(lambda: len(run.inbox.texts) == 250)

            assert run.inbox.texts == [str(number) for number in range(250)]
            assert town.called("getUpdates")[0].values["timeout"] == "0"
            assert town.called("deleteWebhook")[0].values.get("drop_pending_updates") is None


@requirement("case.t9", "fault.f18")
async def test_a_conflict_is_waited_out_and_never_ends_the_polling(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(conflict(times=2))
        with caplog.at_level(logging.INFO, logger="adapters.telegram"):
            async with rig(town) as run:
                await chat.say("hello")
                await run.inbox.until(lambda: run.inbox.texts)

                assert [wait >= 30 for wait in run.clock.slept[:2]] == [True, True]
                assert run.clock.slept[1] > run.clock.slept[0]
                assert run.adapter.health.state is HealthState.CONNECTED

    said = [record.message for record in caplog.records]
    assert len([line for line in said if "same token" in line]) == 1


@requirement("case.t9")
async def test_a_restart_that_fails_after_a_conflict_is_tried_again() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        cut = Fault(trouble=Trouble.CUT_BEFORE, method="getUpdates", times=3)
        town.fail(conflict(), cut, refuse("getUpdates", 502, "Bad Gateway"))
        async with rig(town) as run:
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)

            assert run.adapter.health.state is HealthState.CONNECTED


async def test_a_webhook_somebody_registered_is_removed_when_we_are_to_poll() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with rig(town) as run:
            from tests.fakes.telegram.state import Webhook

            bot.state.webhook = Webhook(url="https://x.example", secret=None, max_connections=1)
            town.service.changed()
            await town.until(lambda: bot.state.webhook is None)
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)

            assert run.adapter.health.state is HealthState.CONNECTED


@requirement("platform.state.receiving", "platform.failure.never_stops_others")
async def test_a_service_that_is_down_at_the_start_is_waited_for() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        await chat.say("hello")
        await town.down()
        async with rig(town, connected=False) as run:
            await eventually_async(lambda: run.adapter.health.state is HealthState.DEGRADED)
            assert run.adapter.health.reason == "Telegram cannot be reached: ConnectError"

            await town.up()
            await run.inbox.until(lambda: run.inbox.texts)
            assert run.adapter.health.state is HealthState.CONNECTED


@requirement("platform.state.receiving")
async def test_a_service_that_goes_away_and_comes_back_is_found_again() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await town.until(lambda: run.adapter.health.state is HealthState.CONNECTED)
            await town.down()
            await eventually_async(lambda: run.adapter.health.state is HealthState.DEGRADED)
            await town.up()
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)

            assert run.adapter.health.state is HealthState.CONNECTED


@requirement("platform.state.receiving")
async def test_silence_for_too_long_is_not_connected() -> None:
    async with unhurried() as town:
        async with rig(town) as run:
            town.fail(Fault(trouble=Trouble.HANG_BEFORE, method="getUpdates"))
            await town.until(lambda: run.adapter.health.state is HealthState.CONNECTED)

            run.clock.advance(91)

            assert run.adapter.health.state is HealthState.DEGRADED
            assert "nothing heard" in run.adapter.health.reason
        town.heal()


@requirement("platform.state.receiving", "case.t25")
async def test_a_token_telegram_does_not_know_is_said_without_naming_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from pydantic import SecretStr

    secret = "999999:AAAA-not-a-bot"
    async with unhurried() as town:
        with caplog.at_level(logging.DEBUG, logger="adapters.telegram"):
            async with rig(town, connected=False, token=SecretStr(secret)) as run:
                await eventually_async(lambda: run.adapter.health.state is HealthState.UNAUTHORIZED)
                assert run.adapter.health.reason == "Telegram does not accept the token"
                assert run.clock.slept[0] >= 60

    assert not [record for record in caplog.records if "AAAA" in record.getMessage()]


async def test_a_pause_telegram_asks_for_is_kept() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(flood("getUpdates", 17))
        async with rig(town) as run:
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)

            assert run.clock.slept[0] == 17


@requirement("case.t22", "fault.f26")
async def test_an_update_that_comes_twice_has_one_key() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with rig(town) as run:
            await chat.say("hello")
            await town.until(lambda: not bot.pending)
            bot.redeliver(times=2)
            await run.inbox.until(lambda: len(run.inbox.events) >= 2)

            keys = {event.dedupe for event in run.inbox.events}
            assert keys == {"telegram:123456:100001"}


async def test_an_update_nobody_can_read_holds_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = ("update", "getUpdates", "answer of getUpdates")
    async with unhurried(allow_violations=broken) as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        await chat.say("before")
        bad = town.service.emit(bot.state, chat.state, "message", {"message_id": "secret words"})
        assert bad is not None
        await chat.say("after")
        async with rig(town) as run:
            await town.until(lambda: not bot.pending)

            assert run.inbox.texts == ["before", "after"]
    assert f"update {bad.id} cannot be read" in caplog.text
    assert "secret words" not in caplog.text


async def test_an_event_the_gateway_can_never_store_holds_up_no_other() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with rig(town) as run:
            run.inbox.failures = [ValueError("cannot be stored")]
            await chat.say("bad")
            await chat.say("good")
            await town.until(lambda: not bot.pending)

            assert run.inbox.texts == ["good"]


@requirement("fault.f23")
async def test_a_group_that_becomes_a_supergroup_is_followed() -> None:
    async with unhurried() as town:
        ana = town.user(111, "Ana")
        chat = town.group("Team", ana, bot=town.bot(TOKEN))
        async with rig(town) as run:
            await chat.say("/help")
            moved = await chat.migrate()
            await moved.say("/status")
            await run.inbox.until(lambda: len(run.inbox.events) == 2)

            assert set(run.ledger.moved) == {(str(chat.id), str(moved.id))}
            assert [event.place.chat for event in run.inbox.events] == [
                str(chat.id),
                str(moved.id),
            ]


@requirement("command.telegram_names")
async def test_the_menu_is_set_once_and_writes_dashes_as_underscores() -> None:
    menu = Menu(commands=(("help", "Show the commands"), ("reload-mcp", "Apply the servers")))
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        for _ in range(2):
            async with rig(town, setting=Setting(menus=(menu,))):
                assert [name for name, _ in chat.menu()] == ["help", "reload_mcp"]
                assert town.count("setMyCommands") == 1


@requirement("command.one_table")
async def test_each_scope_has_its_menu_and_who_has_none_keeps_nobody_from_theirs() -> None:
    async with unhurried() as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        bot = town.bot(TOKEN)
        chats = [town.private(person, bot=bot) for person in (ana, ben)]
        team = town.supergroup("Team", ana, ben, bot=bot)
        other = town.supergroup("Other", ana, bot=bot)

        def menu(name: str, **scope: Any) -> Menu:
            return Menu(commands=((name, "A summary"),), **scope)

        menus = (
            menu("alone"),
            menu("together", groups=True),
            menu("unknown", chat="999"),
            menu("named", chat="@somewhere"),
            menu("admin", chat="111"),
            menu("team", chat=str(team.id)),
            menu("leader", chat=str(team.id), user="111"),
        )
        async with rig(town, setting=Setting(menus=menus)):
            assert [chat.menu() for chat in chats] == [
                [("admin", "A summary")],
                [("alone", "A summary")],
            ]
            assert team.menu(by=ana) == [("leader", "A summary")]
            assert team.menu(by=ben) == [("team", "A summary")]
            assert other.menu(by=ana) == [("together", "A summary")]


async def test_menus_are_left_for_later_when_telegram_asks_for_a_pause() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(flood("setMyCommands", 1000))
        menus = (Menu(commands=(("help", "Help"),)),)
        async with rig(town, setting=Setting(menus=menus)) as run:
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)
            assert chat.menu() == []


async def test_a_refused_menu_does_not_keep_the_bot_from_listening() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID"))
        async with rig(town, setting=Setting(menus=(Menu(commands=(("help", "Help"),)),))) as run:
            await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)


@requirement("platform.telegram.base_url")
async def test_the_configured_address_is_used_for_calls_and_downloads() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await chat.send_file("document", b"data", name="a.txt")
            await run.inbox.until(lambda: run.inbox.events)

            (event,) = run.inbox.events
            assert isinstance(event, InboundMessage)
            assert event.attachments[0].name == "a.txt"
            assert account(town).base_url == town.base_url


@requirement("case.t20")
async def test_an_anonymous_admin_is_the_chat_and_no_person() -> None:
    async with unhurried() as town:
        chat = town.supergroup(
            "Team", town.user(111, "Ana"), bot=town.bot(TOKEN), bot_status="administrator"
        )
        async with rig(town) as run:
            await chat.say_as_chat("hi", stand_in=True)
            await chat.say_as_chat("again", stand_in=False)
            await run.inbox.until(lambda: len(run.inbox.events) == 2)

            assert [event.sender.id for event in run.inbox.events] == [str(chat.id)] * 2
            assert [event.sender.is_bot for event in run.inbox.events] == [False, False]


@requirement("case.t23", "case.t28")
async def test_a_command_is_ours_unless_it_names_another_bot() -> None:
    async with unhurried() as town:
        ana = town.user(111, "Ana")
        chat = town.supergroup("Team", ana, bot=town.bot(TOKEN), bot_status="administrator")
        async with rig(town) as run:
            await chat.say("/new@hermes_test_bot please")
            await chat.say("/new@otherbot")
            await chat.say("/reload_mcp notes")
            await chat.say("/reload-mcp")
            await run.inbox.until(lambda: len(run.inbox.events) == 3)

            commands = [event for event in run.inbox.events if isinstance(event, CommandGiven)]
            assert [(item.name, item.argument) for item in commands] == [
                ("new", "please"),
                ("reload-mcp", "notes"),
                ("reload-mcp", ""),
            ]
            assert {item.sender.id for item in commands} == {"111"}


@requirement("case.db9", "conversation.participant")
async def test_topics_are_shared_and_plain_groups_divided_by_person() -> None:
    async with unhurried() as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        bot = town.bot(TOKEN)
        forum = town.supergroup("Forum", ana, ben, bot=bot, forum=True, bot_status="administrator")
        plain = town.supergroup("Plain", ana, ben, bot=bot, bot_status="administrator")
        async with rig(town) as run:
            topic = await forum.open_topic("Plans")
            await topic.say("one")
            await topic.say("two", by=ben)
            await forum.say("general")
            said = await plain.say("three")
            await plain.say("four", by=ben, reply_to=said)
            await run.inbox.until(lambda: len(run.inbox.texts) == 5)

            keys = [event.place.session_key for event in run.inbox.events]
            assert keys == [
                f"agent:main:telegram:topic:{forum.id}:{topic.topic}",
                f"agent:main:telegram:topic:{forum.id}:{topic.topic}",
                f"agent:main:telegram:topic:{forum.id}:1",
                f"agent:main:telegram:group:{plain.id}:111",
                f"agent:main:telegram:group:{plain.id}:222",
            ]


@requirement("threat.s2")
async def test_data_we_never_made_is_a_press_of_no_button() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            shown = await chat.say("hello")
            for data in ("v1:short", "approve:1", "v1:" + "a" * 22, "v1:" + "\u00e9" * 22):
                await chat.press(data=data, message=shown)
            await run.inbox.until(lambda: len(run.inbox.events) == 5)

            presses = [event for event in run.inbox.events if isinstance(event, ButtonPressed)]
            assert [press.token for press in presses] == ["", "", "a" * 22, ""]


@requirement("fault.f25")
async def test_turns_are_told_of_a_backlog_before_its_first_batch_and_after_its_last() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        for n in range(150):
            await chat.say(f"m{n}")
        async with rig(town) as run:
            await run.inbox.until(lambda: len(run.inbox.texts) == 150)
            await run.inbox.until(lambda: len(run.inbox.backlogs) >= 2)

            assert run.inbox.texts == [f"m{n}" for n in range(150)]
            assert run.inbox.backlogs[:2] == [True, False]
