"""What can go wrong on the way to Telegram goes wrong in the server for tests, one way each."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from telegram import MessageEntity
from telegram.error import BadRequest, NetworkError, TimedOut

from tests.fakes.telegram import Fault, Trouble, conflict, refuse, telegram_server
from tests.fakes.telegram.kept import load, save
from tests.fakes.telegram.process import telegram_process
from tests.fakes.telegram.town import TOKEN
from tests.project.telegram_client import client

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("trouble", "arrives"),
    [
        (Trouble.REFUSE, False),
        (Trouble.PAGE, False),
        (Trouble.CUT_BEFORE, False),
        (Trouble.CUT_AFTER, True),
        (Trouble.CUT_ANSWER, True),
        (Trouble.HANG_BEFORE, False),
        (Trouble.HANG_AFTER, True),
    ],
)
async def test_a_failed_send_had_its_effect_or_not(trouble: Trouble, arrives: bool) -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        town.fail(Fault(trouble=trouble, method="sendMessage", status=502))
        with pytest.raises(NetworkError):
            await bot.send_message(111, "hi", read_timeout=0.3)
        seen = chat.texts
        await bot.send_message(111, "again")

        assert seen == (["hi"] if arrives else [])
        assert chat.texts == [*seen, "again"]


async def test_a_hanging_call_goes_on_when_it_is_released() -> None:
    async with telegram_server() as town, client(town) as bot:
        town.private(town.user(111, "Ana"))
        town.fail(Fault(trouble=Trouble.HANG_BEFORE, method="sendMessage"))
        send = asyncio.create_task(bot.send_message(111, "hi", read_timeout=30))
        await town.until(lambda: town.count("sendMessage"))
        town.heal()

        with pytest.raises(NetworkError):
            await send


async def test_a_slow_call_works_late() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        town.fail(Fault(trouble=Trouble.SLOW, method="sendMessage", seconds=0.2))
        with pytest.raises(TimedOut):
            await bot.send_message(111, "hi", read_timeout=0.05)

        await chat.wait_for_reply("hi")


async def test_faults_meet_calls_in_their_order_and_after_those_to_skip() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        town.fail(
            Fault(
                trouble=Trouble.REFUSE,
                method="sendMessage",
                skip=1,
                status=400,
                description="Bad Request: odd",
            )
        )
        await bot.send_message(111, "one")
        with pytest.raises(BadRequest, match="Odd"):
            await bot.send_message(111, "two")
        await bot.send_message(111, "three")

        assert chat.texts == ["one", "three"]


async def test_conflicts_can_be_scripted() -> None:
    async with telegram_server() as town:
        town.bot()
        town.fail(conflict(times=2), refuse("getUpdates", 500, "Internal Server Error"))
        async with httpx.AsyncClient() as http:
            url = f"{town.base_url}/bot{TOKEN}/getUpdates"
            statuses = [(await http.get(url)).status_code for _ in range(4)]

        assert statuses == [409, 409, 500, 200]


async def test_the_whole_service_goes_down_and_comes_back_with_everything() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        poll = asyncio.create_task(bot.get_updates(timeout=30))
        await town.until(lambda: town.count("getUpdates"))
        await town.down()
        await poll
        with pytest.raises(NetworkError):
            await bot.send_message(111, "hi")
        await chat.say("are you there?")
        await town.up()
        (update,) = await bot.get_updates()

        assert update.message is not None
        assert update.message.text == "are you there?"


async def misbehave() -> None:
    async with telegram_server() as town, client(town) as bot, httpx.AsyncClient() as http:
        town.private(town.user(111, "Ana"))
        with pytest.raises(BadRequest):
            await bot.send_message(111, "hi", api_kwargs={"entities": [{"kind": "bold"}]})
        with pytest.raises(BadRequest):
            await bot.send_message(111, "hi", api_kwargs={"volume": 11})
        await bot.send_message(111, "hi", message_effect_id="1")
        bold = [MessageEntity(MessageEntity.BOLD, n, 1) for n in range(101)]
        await bot.send_message(111, "x" * 101, entities=bold)
        for method in ("sendPoll", "sendPidgeon"):
            answer = await http.post(f"{town.base_url}/bot{TOKEN}/{method}")
            assert answer.status_code == httpx.codes.NOT_FOUND


async def test_what_the_service_does_not_have_fails_the_test() -> None:
    with pytest.raises(AssertionError) as found:
        await misbehave()

    for problem in (
        "sendMessage: entities.0.type: Field required",
        "sendMessage: message_effect_id is not modelled here",
        "sendMessage: volume: no such field",
        "sendMessage: 101 entities: those beyond 100 are dropped",
        "sendPoll: not modelled here",
        "sendPidgeon: no method of the Bot API",
    ):
        assert problem in str(found.value)


async def test_updates_come_out_of_order_when_a_test_wants_it() -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        said = await chat.say("helo")
        await chat.edit(said, "hello")
        town.bot().reverse_pending()
        first, second = await bot.get_updates()

        assert first.edited_message is not None
        assert second.message is not None
        assert first.update_id < second.update_id


@dataclass(slots=True)
class Receiver:
    """A webhook that answers what a test says and keeps what came."""

    url: str = ""
    answers: list[int] = field(default_factory=list[int])
    came: list[tuple[str | None, Any]] = field(default_factory=list[tuple[str | None, Any]])


@asynccontextmanager
async def receiver() -> AsyncGenerator[Receiver]:
    hook = Receiver()

    async def post(request: web.Request) -> web.Response:
        assert request.headers["Content-Type"] == "application/json"
        secret = request.headers.get("X-Telegram-Bot-Api-Secret-Token")
        hook.came.append((secret, json.loads(await request.text())))
        return web.Response(status=hook.answers.pop(0) if hook.answers else 200)

    app = web.Application()
    app.router.add_post("/hook", post)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield hook
    finally:
        await runner.cleanup()


async def test_a_webhook_gets_each_update_until_it_accepts_it() -> None:
    async with telegram_server() as town, client(town) as bot, receiver() as hook:
        chat = town.private(town.user(111, "Ana"))
        hook.answers = [500, 403]
        await bot.set_webhook(hook.url, secret_token="s3cret")
        await chat.say("one")
        await chat.say("two")
        await town.until(lambda: not town.bot().pending)
        info = await bot.get_webhook_info()

        texts = [update["message"]["text"] for _, update in hook.came]
        assert texts == ["one", "one", "one", "two"]
        assert {secret for secret, _ in hook.came} == {"s3cret"}
        assert info.last_error_message == "Wrong response from the webhook: 403"


async def test_the_world_is_kept_in_a_file(tmp_path: Path) -> None:
    async with telegram_server() as town, client(town) as bot:
        chat = town.private(town.user(111, "Ana"))
        await chat.send_file("document", b"\xff\x00", name="a.bin")
        await bot.send_message(111, "hi")
        save(town.service.world, tmp_path / "world.json")

    async with telegram_server(world=load(tmp_path / "world.json")) as town, client(town) as bot:
        await bot.send_message(111, "hi again")
        chat = town.chat(111)

        assert [message.id for message in chat.messages] == [1, 2, 3]
        assert town.service.world.files["file-1"].data == b"\xff\x00"
        assert len(await bot.get_updates()) == 1


def test_a_server_of_its_own_is_driven_over_http() -> None:
    with telegram_process() as telegram, httpx.Client() as http:
        token = telegram.do("bot")["token"]
        telegram.do("user", id=111, name="Ana")
        chat = telegram.do("private", user=111)["chat"]
        said = telegram.do("say", chat=chat, text="hello")
        root = f"{telegram.base_url}/bot{token}"
        (update,) = http.get(f"{root}/getUpdates").json()["result"]
        button = {"text": "Allow once", "callback_data": "a"}
        markup = {"inline_keyboard": [[button]]}
        body = {"chat_id": chat, "text": "May I?", "reply_markup": markup}
        http.post(f"{root}/sendMessage", json=body).raise_for_status()
        card = telegram.do("wait", chat=chat, contains="May I?", label="Allow once")
        query = telegram.do("press", chat=chat, label="Allow once")["query"]
        answer = {"callback_query_id": query, "text": "Thanks"}
        http.post(f"{root}/answerCallbackQuery", json=answer).raise_for_status()
        telegram.do("fail", trouble="cut_after", method="sendMessage")
        with pytest.raises(httpx.TransportError):
            http.post(f"{root}/sendMessage", json={"chat_id": chat, "text": "lost answer"})

        assert update["message"]["message_id"] == said["id"]
        assert card["labels"] == ["Allow once"]
        assert telegram.do("query", query=query, seconds=1)["text"] == "Thanks"
        assert telegram.do("messages", chat=chat)[-1]["text"] == "lost answer"
        assert telegram.do("calls", method="sendMessage", count=True) == 2
        with pytest.raises(AssertionError, match="button 'Deny'"):
            telegram.do("press", chat=chat, label="Deny")
