"""The Telegram server for tests behaves as Telegram does, seen by python-telegram-bot."""

import asyncio
from io import BytesIO

import pytest
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    InputMediaPhoto,
    ReplyParameters,
)
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken

from tests.fakes.telegram import UNLIMITED, telegram_server
from tests.project.telegram_client import client

pytestmark = pytest.mark.anyio
CARD = InlineKeyboardMarkup(
    [
        [InlineKeyboardButton("Allow once", callback_data="a1:x:y")],
        [InlineKeyboardButton("Deny", callback_data="a1:x:n")],
    ]
)


async def test_a_person_reads_what_the_bot_wrote_and_the_bot_what_the_person_wrote() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        said = await chat.say("hello /help")
        await bot.send_message(111, "hi", reply_parameters=ReplyParameters(said.id))
        (update,) = await bot.get_updates()
        reply = await chat.wait_for_reply("hi")

        assert update.message is not None
        assert update.message.text == "hello /help"
        assert list(update.message.parse_entities(["bot_command"]).values()) == ["/help"]
        assert reply.reply_to == said.id
        assert chat.texts == ["hi"]


async def test_editing_shows_the_new_text_and_takes_the_buttons_away() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        sent = await bot.send_message(111, "May I?", reply_markup=CARD)
        before = chat.replies[0].labels
        await bot.edit_message_text("Allowed by Ana", 111, sent.message_id)

        assert before == ["Allow once", "Deny"]
        assert chat.texts == ["Allowed by Ana"]
        assert chat.replies[0].labels == []
        assert chat.replies[0].past == ["May I?"]


async def test_an_edit_tells_same_missing_and_foreign_messages_apart() -> None:
    async with telegram_server(rates=UNLIMITED) as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        town.private(town.user(222, "Ben"))
        said = await chat.say("hello")
        sent = await bot.send_message(111, "hi")
        asked = await bot.send_message(111, "name?", reply_markup=ForceReply())

        with pytest.raises(BadRequest, match="Message is not modified"):
            await bot.edit_message_text("hi", 111, sent.message_id)
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("hi", 111, 99)
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("hi", 222, sent.message_id)
        with pytest.raises(BadRequest, match="Message can't be edited"):
            await bot.edit_message_text("hi", 111, said.id)
        with pytest.raises(BadRequest, match="Message can't be edited"):
            await bot.edit_message_text("your name?", 111, asked.message_id)


async def test_private_chats_and_groups_share_a_counter_and_supergroups_have_their_own() -> None:
    async with telegram_server() as town, client(town) as bot:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        chat = town.private(ana)
        town.private(ben)
        group, broad = town.group("Team", ana), town.supergroup("All", ana)
        said = await chat.say("hello")
        places = (222, group.id, broad.id, 111, broad.id)
        sent = [await bot.send_message(place, "hi") for place in places]

        assert [said.id, *(m.message_id for m in sent)] == [1, 2, 3, 2, 4, 3]


async def test_updates_come_again_until_they_are_confirmed() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        for number in range(150):
            await chat.say(f"message {number}")
        first = await bot.get_updates()
        again = await bot.get_updates()
        rest = await bot.get_updates(offset=first[-1].update_id + 1)
        none = await bot.get_updates(offset=rest[-1].update_id + 1)

        assert [u.update_id for u in first] == [u.update_id for u in again]
        assert (len(first), len(rest), len(none)) == (100, 50, 0)
        assert town.bot().pending == []


async def test_a_confirmed_update_can_be_delivered_again_under_its_id() -> None:
    async with telegram_server() as town, client(town) as bot:
        await town.private(town.user(111, "Ana")).say("hello")
        (first,) = await bot.get_updates()
        await bot.get_updates(offset=first.update_id + 1)
        town.bot().redeliver()
        (again,) = await bot.get_updates(offset=first.update_id + 1)

        assert again.update_id == first.update_id
        assert await bot.get_updates(offset=first.update_id + 1) == ()


async def test_updates_nobody_fetched_are_kept_for_a_day() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        await chat.say("early")
        town.advance(23 * 3600)
        await chat.say("late")
        town.advance(2 * 3600)

        assert [u.message.text for u in await bot.get_updates() if u.message] == ["late"]


async def test_a_held_poll_answers_as_soon_as_somebody_writes() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        async with asyncio.timeout(5):
            poll = asyncio.create_task(bot.get_updates(timeout=30))
            await town.until(lambda: town.count("getUpdates"))
            await chat.say("hello")
            (update,) = await poll

        assert update.message is not None
        assert update.message.text == "hello"


async def test_a_second_poller_terminates_the_first() -> None:
    async with telegram_server() as town, client(town) as bot, client(town) as other:
        chat = town.private(town.user(111, "Ana"))
        first = asyncio.create_task(bot.get_updates(timeout=30))
        await town.until(lambda: town.count("getUpdates"))
        second = asyncio.create_task(other.get_updates(timeout=30))
        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await first
        await chat.say("hello")

        assert len(await second) == 1


async def test_polling_is_refused_while_a_webhook_is_set() -> None:
    async with telegram_server() as town, client(town) as bot:
        await bot.set_webhook("https://example.org/hook")
        with pytest.raises(Conflict, match="webhook is active"):
            await bot.get_updates()
        await bot.delete_webhook()

        assert await bot.get_updates() == ()


async def test_a_wrong_token_is_unauthorized() -> None:
    async with telegram_server() as town:
        town.bot()
        with pytest.raises(InvalidToken):
            async with Bot("1:wrong", base_url=f"{town.base_url}/bot"):
                pass


async def test_a_press_shows_what_the_bot_answers_and_can_be_answered_once() -> None:
    async with telegram_server() as town, client(town) as bot:
        ben = town.user(222, "Ben")
        chat = town.supergroup("Team", town.user(111, "Ana"), ben)
        await bot.send_message(chat.id, "May I?", reply_markup=CARD)
        press = await chat.press("Deny", by=ben)
        (update,) = await bot.get_updates()
        assert update.callback_query is not None
        await update.callback_query.answer("Denied", show_alert=True)
        answer = await press.answered()

        assert update.callback_query.data == "a1:x:n"
        assert update.callback_query.from_user.id == 222
        assert (answer.text, answer.alert) == ("Denied", True)
        with pytest.raises(BadRequest, match="Query is too old"):
            await update.callback_query.answer()


async def test_a_press_that_waited_too_long_cannot_be_answered() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        await bot.send_message(111, "May I?", reply_markup=CARD)
        press = await chat.press("Deny")
        town.advance(16)

        with pytest.raises(BadRequest, match="Query is too old"):
            await bot.answer_callback_query(press.query.id)


async def test_a_stale_client_still_presses_a_button_that_is_gone() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        sent = await bot.send_message(111, "May I?", reply_markup=CARD)
        await bot.delete_message(111, sent.message_id)
        await chat.press(message=chat.state.messages[sent.message_id], data="a1:x:y")
        (update,) = await bot.get_updates()

        assert update.callback_query is not None
        assert update.callback_query.message is not None
        assert not update.callback_query.message.is_accessible


async def test_a_group_with_privacy_lets_the_bot_hear_only_what_is_meant_for_it() -> None:
    async with telegram_server() as town, client(town) as bot:
        group = town.supergroup("Team", town.user(111, "Ana"))
        sent = await bot.send_message(group.id, "hi")
        await group.say("not for you")
        await group.say("/new@other_bot")
        await group.say("/new@hermes_test_bot")
        await group.say("hey @hermes_test_bot")
        await group.say("yes", reply_to=group.state.messages[sent.message_id])

        heard = [u.message.text for u in await bot.get_updates() if u.message]
        assert heard == ["/new@hermes_test_bot", "hey @hermes_test_bot", "yes"]


async def test_who_blocks_or_removes_the_bot_is_not_written_to() -> None:
    async with telegram_server() as town, client(town) as bot:
        ana = town.user(111, "Ana")
        chat, group = town.private(ana), town.supergroup("Team", ana)
        town.private(town.user(222, "Ben"), started=False)
        await chat.block()
        await group.set_bot("kicked")

        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await bot.send_message(111, "hi")
        with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
            await bot.send_message(group.id, "hi")
        with pytest.raises(Forbidden, match="bot can't initiate conversation with a user"):
            await bot.send_message(222, "hi")
        with pytest.raises(BadRequest, match="Chat not found"):
            await bot.send_message(333, "hi")
        statuses = [u.my_chat_member for u in await bot.get_updates()]
        assert [s.new_chat_member.status for s in statuses if s] == ["kicked", "kicked"]


async def test_a_group_that_grew_names_its_new_id() -> None:
    async with telegram_server(rates=UNLIMITED) as town, client(town) as bot:
        group = town.group("Team", town.user(111, "Ana"))
        new = await group.migrate()
        with pytest.raises(ChatMigrated) as moved:
            await bot.send_message(group.id, "hi")
        await bot.send_message(new.id, "hi")

        assert moved.value.new_chat_id == new.id
        assert new.texts == ["hi"]


async def test_topics_carry_their_thread_and_the_general_one_carries_none() -> None:
    async with telegram_server(rates=UNLIMITED) as town, client(town) as bot:
        forum = town.supergroup("Team", town.user(111, "Ana"), forum=True)
        topic = await forum.open_topic("Deploys")
        await topic.say("/status")
        await forum.say("/help")
        created, inside, general = await bot.get_updates()
        await bot.send_message(forum.id, "ok", message_thread_id=topic.topic)

        assert created.message is not None
        assert created.message.forum_topic_created is not None
        assert inside.message is not None
        assert inside.message.is_topic_message
        assert inside.message.message_thread_id == topic.topic
        assert general.message is not None
        assert general.message.message_thread_id is None
        assert topic.texts == ["ok"]
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(forum.id, "hi", message_thread_id=1)
        await topic.delete_topic()
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(forum.id, "hi", message_thread_id=topic.topic)


async def test_who_writes_as_a_chat_is_named_by_a_stand_in_or_not_at_all() -> None:
    async with telegram_server() as town, client(town) as bot:
        ana = town.user(111, "Ana")
        channel = town.channel("News", ana)
        group = town.supergroup("Team", ana, bot_status="administrator")
        await group.say_as_chat("an admin")
        await group.say_as_chat("a channel", author=channel)
        await group.say_as_chat("nobody", stand_in=False)
        await channel.say("a post")
        updates = await bot.get_updates()

        said = [u.effective_message for u in updates]
        assert [m.from_user.username if m and m.from_user else None for m in said] == [
            "GroupAnonymousBot",
            "Channel_Bot",
            None,
            None,
        ]
        assert [m.sender_chat.id if m and m.sender_chat else None for m in said] == [
            group.id,
            channel.id,
            group.id,
            channel.id,
        ]
        assert updates[3].channel_post is not None


async def test_a_bot_gets_the_kinds_of_updates_it_asked_for() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        said = await chat.say("hello")
        await chat.react(said, "👍")
        await bot.get_updates(allowed_updates=["message_reaction"])
        await chat.say("unheard")
        await chat.react(said, "🎉")
        first, second = await bot.get_updates()

        assert first.message is not None
        assert second.message_reaction is not None


async def test_files_go_both_ways() -> None:
    async with telegram_server(rates=UNLIMITED) as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        await chat.send_file("document", b"from Ana", name="a.txt", caption="look")
        await chat.send_file("photo", b"huge", size=20_000_001)
        small, large = (u.message for u in await bot.get_updates())
        assert small is not None
        assert large is not None
        assert small.document is not None
        file = await bot.get_file(small.document.file_id)
        await bot.send_document(111, BytesIO(b"for Ana"), filename="b.txt", caption="here")
        media = [InputMediaPhoto(b"1", caption="one"), InputMediaPhoto(b"2")]
        album = await bot.send_media_group(111, media)
        await bot.send_media_group(111, [InputMediaDocument(small.document.file_id)])

        assert bytes(await file.download_as_bytearray()) == b"from Ana"
        assert (small.document.file_name, small.caption) == ("a.txt", "look")
        assert chat.replies[0].media["document"]["file_name"] == "b.txt"
        assert len({message.media_group_id for message in album}) == 1
        with pytest.raises(BadRequest, match="File is too big"):
            await bot.get_file(large.photo[-1].file_id)


async def test_the_bot_keeps_its_menu_and_knows_its_chats() -> None:
    async with telegram_server() as town, client(town) as bot:
        ana = town.user(111, "Ana")
        channel = town.channel("News", ana, username="hermes_news")
        group = town.supergroup("Team", ana)
        await bot.set_my_commands([("help", "What I can do")])
        await bot.set_message_reaction(group.id, (await group.say("/help")).id, "👀")
        await bot.send_chat_action(group.id, "typing")

        assert [c.command for c in await bot.get_my_commands()] == ["help"]
        assert (await bot.get_chat("@hermes_news")).id == channel.id
        assert (await bot.get_chat_member(group.id, 111)).status == "member"
        assert group.messages[0].reactions[bot.id] == ["👀"]
        assert [action.action for action in group.state.actions] == ["typing"]


async def test_a_preview_is_seen_until_it_fades_or_the_message_comes() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        await bot.send_message_draft(111, 1, "hel")
        seen = chat.draft
        town.advance(31)
        faded = chat.draft
        await bot.send_message_draft(111, 1, "hello")
        await bot.send_message(111, "hello there")

        assert (seen, faded, chat.draft) == ("hel", None, None)
        assert chat.texts == ["hello there"]
