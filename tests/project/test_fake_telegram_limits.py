"""The Telegram server for tests refuses what Telegram refuses, and says so as it does."""

import os
from collections.abc import Awaitable, Callable, Sequence
from io import BytesIO

import pytest
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import BadRequest, RetryAfter

from tests.fakes.telegram import UNLIMITED, Limits, flood, telegram_server
from tests.project.telegram_client import client

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def whole_time_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the library warns of its own exception."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    assert os.environ["PTB_TIMEDELTA"]


def keyboard(*rows: Sequence[str]) -> InlineKeyboardMarkup:
    """Make buttons whose data are the given strings."""
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton("x", callback_data=data) for data in row] for row in rows]
    )


async def bold(bot: Bot, text: str, offset: int, length: int) -> object:
    entity = MessageEntity(MessageEntity.BOLD, offset, length)
    return await bot.send_message(111, text, entities=[entity])


REFUSED: dict[str, tuple[Callable[[Bot], Awaitable[object]], str]] = {
    "a text of 4097 units": (lambda b: b.send_message(111, "😀" * 2048 + "x"), "too long"),
    "an empty text": (lambda b: b.send_message(111, ""), "Message text is empty"),
    "a blank text": (lambda b: b.send_message(111, " \n "), "Text must be non-empty"),
    "an invisible text": (lambda b: b.send_message(111, "\u200b\u2800"), "Text must be non-empty"),
    "a caption of 1025 units": (
        lambda b: b.send_document(111, BytesIO(b"x"), caption="x" * 1025),
        "caption is too long",
    ),
    "an entity beyond the text": (lambda b: bold(b, "hi", 2, 1), "begins after the end"),
    "an entity that is too long": (lambda b: bold(b, "hi", 0, 3), "ends after the end"),
    "an entity inside an emoji": (lambda b: bold(b, "😀", 1, 1), "in a middle of a UTF-16"),
    "65 bytes behind a button": (
        lambda b: b.send_message(111, "?", reply_markup=keyboard(["é" * 32 + "x"])),
        "Button_data_invalid",
    ),
    "101 buttons": (
        lambda b: b.send_message(111, "?", reply_markup=keyboard(*(["x"] for _ in range(101)))),
        "Reply_markup_too_long",
    ),
    "a placeholder of 65": (
        lambda b: b.send_message(
            111, "?", reply_markup=ForceReply(input_field_placeholder="x" * 65)
        ),
        "placeholder is too long",
    ),
    "a reply to nothing": (
        lambda b: b.send_message(111, "hi", reply_parameters=ReplyParameters(99)),
        "Message to be replied not found",
    ),
    "a topic where there are none": (
        lambda b: b.send_message(111, "hi", message_thread_id=5),
        "Message thread not found",
    ),
    "an empty file": (lambda b: b.send_document(111, BytesIO(b"")), "File must be non-empty"),
    "a photo of 6 bytes": (lambda b: b.send_photo(111, BytesIO(b"123456")), "too big for a photo"),
    "an unknown file": (lambda b: b.get_file("file-77"), "Invalid file_id"),
    "an unknown reaction": (lambda b: b.set_message_reaction(111, 1, "✅"), "Reaction_invalid"),
    "a reaction to nothing": (
        lambda b: b.set_message_reaction(111, 99, "👍"),
        "Message to react not found",
    ),
    "an unknown action": (lambda b: b.send_chat_action(111, "thinking"), "wrong parameter action"),
    "a command in capitals": (lambda b: b.set_my_commands([("Help", "x")]), "command_invalid"),
    "101 commands": (
        lambda b: b.set_my_commands([(f"c{n}", "x") for n in range(101)]),
        "Too many commands",
    ),
    "deleting nothing": (lambda b: b.delete_message(111, 99), "Message to delete not found"),
    "a toast of 201": (lambda b: b.answer_callback_query("1", "x" * 201), "Message_too_long"),
    "an unknown press": (lambda b: b.answer_callback_query("1"), "Query is too old"),
    "a draft without number": (lambda b: b.send_message_draft(111, 0, "x"), "must be non-zero"),
    "a draft in a group": (lambda b: b.send_message_draft(-5001, 1, "x"), "private chat"),
    "a webhook without TLS": (lambda b: b.set_webhook("http://example.org"), "HTTPS"),
    "a secret with a space": (
        lambda b: b.set_webhook("https://example.org", secret_token="a b"),
        "unallowed characters",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_telegram_refuses_is_refused(case: str) -> None:
    call, answer = REFUSED[case]
    limits = Limits(photo_bytes=5)
    async with telegram_server(limits=limits) as town, client(town) as bot:
        ana = town.user(111, "Ana")
        await town.private(ana).say("hello")
        town.group("Team", ana)

        with pytest.raises(BadRequest, match=f"(?i){answer}"):
            await call(bot)
        assert town.chat(111).replies == []


async def test_what_just_fits_is_taken() -> None:
    async with telegram_server(rates=UNLIMITED) as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        await bot.send_message(111, "😀" * 2048)
        await bot.send_document(111, BytesIO(b"x"), caption="x" * 1024)
        await bot.send_message(111, "?", reply_markup=keyboard(["x" * 64] * 8, ["é" * 32]))
        await bold(bot, "😀 x", 0, 2)

        assert [len(m.text) for m in chat.replies] == [2048, 1024, 1, 3]


async def test_text_is_kept_as_telegram_keeps_it() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        entity = MessageEntity(MessageEntity.BOLD, 5, 6)
        sent = await bot.send_message(111, "  a\r\n😀\u202eb\x07c \n", entities=[entity])

        assert chat.texts == ["a\n😀b c"]
        assert chat.replies[0].entities == [{"type": "bold", "offset": 2, "length": 5}]
        assert sent.text == "a\n😀b c"


@pytest.mark.parametrize(("place", "burst", "wait"), [("private", 3, "1"), ("supergroup", 20, "3")])
async def test_who_writes_too_often_has_to_wait(place: str, burst: int, wait: str) -> None:
    async with telegram_server() as town, client(town) as bot:
        ana = town.user(111, "Ana")
        chat = town.private(ana) if place == "private" else town.supergroup("Team", ana)
        other = town.private(town.user(222, "Ben"))
        for number in range(burst):
            await bot.send_message(chat.id, f"message {number}")
        with pytest.raises(RetryAfter, match=f"Retry in .*{wait}"):
            await bot.send_message(chat.id, "one more")
        await bot.send_message(other.id, "others are not held up")
        town.advance(float(wait))
        await bot.send_message(chat.id, "one more")

        assert len(chat.replies) == burst + 1
        assert town.count("sendMessage", chat=chat.id, ok=False) == 1


async def test_thirty_messages_a_second_are_the_most_of_a_bot() -> None:
    async with telegram_server() as town, client(town) as bot:
        people = [town.user(200 + number, f"P{number}") for number in range(40)]
        chats = [town.private(person) for person in people]

        async def write_to_everybody() -> None:
            for chat in chats * 10:
                await bot.send_message(chat.id, "hi")

        with pytest.raises(RetryAfter):
            await write_to_everybody()
        assert town.count("sendMessage", ok=True) >= 30


async def test_a_scripted_wait_meets_one_chat_and_is_said_in_seconds() -> None:
    async with telegram_server() as town, client(town) as bot:
        group = town.supergroup("Team", town.user(111, "Ana"))
        town.private(town.user(222, "Ben"))
        town.fail(flood("sendMessage", 1000, chat=group.id, times=2))
        for _ in range(2):
            with pytest.raises(RetryAfter, match="0:16:40"):
                await bot.send_message(group.id, "hi")
        await bot.send_message(222, "hi")
        await bot.send_message(group.id, "hi")

        assert group.texts == ["hi"]
