import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from adapters.telegram.webhook import MAX_BODY
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.errors import DeliveryUnsure, StoreBusy
from gateway.domain.health import HealthState
from tests.adapters.telegram.rig import TOKEN, Rig, dm, rig, unhurried
from tests.fakes.telegram import Fault, Town, Trouble, refuse
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SECRET = "long-shared-words"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@asynccontextmanager
async def listening(town: Town, *, url: str | None = None) -> AsyncGenerator[tuple[Rig, str]]:
    """Run an adapter that is posted to; yields it with its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/telegram"
    hook = {
        "url": address if url is None else url,
        "listen": f"127.0.0.1:{port}",
        "secret": SECRET,
    }
    async with rig(town, connected=False, mode="webhook", webhook=hook) as run:
        await eventually_async(lambda: run.adapter.health.state is HealthState.CONNECTED)
        yield run, address


def update(number: int = 1, text: str = "hello") -> dict[str, object]:
    person = {"id": 111, "is_bot": False, "first_name": "Ana"}
    chat = {"id": 111, "type": "private", "first_name": "Ana"}
    message = {"message_id": number, "date": 1, "chat": chat, "from": person, "text": text}
    return {"update_id": number, "message": message}


async def post(address: str, body: object, *, secret: str | None = SECRET) -> int:
    headers = {} if secret is None else {HEADER: secret}
    content = body if isinstance(body, bytes) else None
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(
            address, headers=headers, content=content, json=None if content is not None else body
        )
    return answer.status_code


@requirement("platform.telegram.webhook")
async def test_telegram_is_told_where_to_post_and_what_it_posts_arrives_in_order() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        await chat.say("waited")
        async with listening(town) as (run, address):
            for word in ("one", "two", "three"):
                await chat.say(word)
            await run.inbox.until(lambda: len(run.inbox.texts) == 4)

            assert run.inbox.texts == ["waited", "one", "two", "three"]
            assert bot.state.webhook is not None
            assert bot.state.webhook.url == address
            assert bot.state.webhook.secret == SECRET
            assert town.count("getUpdates") == 0


@requirement("threat.s24")
async def test_who_does_not_know_the_secret_is_not_heard() -> None:
    async with unhurried() as town, listening(town) as (run, address):
        assert await post(address, update(), secret=None) == 403
        assert await post(address, update(), secret="guess") == 403
        assert await post(address, update(), secret=SECRET.upper()) == 403
        assert await post(address, b"x" * (MAX_BODY * 2), secret="guess") == 403
        assert await post(address, update()) == 200

        assert len(run.inbox.events) == 1


@requirement("threat.s24", "threat.s21")
async def test_what_is_no_update_is_refused_and_a_large_body_is_not_read() -> None:
    async with unhurried() as town, listening(town) as (run, address):
        assert await post(address, b"x" * (MAX_BODY + 1)) == 413
        assert await post(address, b"{not json") == 400
        assert await post(address, b"[" * 100_000) == 400
        assert (
            await post(address, b'{"update_id": 6, "x": ' + b"[" * 900 + b"]" * 900 + b"}") == 200
        )
        assert await post(address, [1, 2]) == 400
        # Sent again it would be just as unreadable, and hold up what is behind it.
        assert await post(address, {"update_id": 7, "message": {"message_id": "x"}}) == 200

        assert run.inbox.events == []
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(address)).status_code == 405


@requirement("intake.before_ack")
async def test_a_post_is_answered_only_after_the_message_is_stored() -> None:
    async with unhurried() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with listening(town) as (run, address):
            run.inbox.failures = [StoreBusy("locked")]
            assert await post(address, update(900)) == 503
            assert run.adapter.health.state is HealthState.DEGRADED

            run.inbox.failures = [StoreBusy("locked")] * 2
            await chat.say("hello")
            await town.until(lambda: not bot.pending)

            assert run.inbox.texts == ["hello"]
            assert run.adapter.health.state is HealthState.CONNECTED


@requirement("platform.telegram.webhook")
async def test_without_a_secret_the_account_is_off_and_says_why() -> None:
    hook = {"url": "https://x.example/hook", "listen": "127.0.0.1:1"}
    async with unhurried() as town, rig(town, connected=False, mode="webhook", webhook=hook) as run:
        await eventually_async(lambda: run.adapter.health.state is HealthState.OFF)

        assert "secret is missing" in run.adapter.health.reason
        assert town.calls == []


async def test_an_address_in_use_is_said_and_tried_again() -> None:
    async with unhurried() as town:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            listen = f"127.0.0.1:{taken.getsockname()[1]}"
            hook = {"url": f"http://{listen}/", "listen": listen, "secret": SECRET}
            async with rig(town, connected=False, mode="webhook", webhook=hook) as run:
                await eventually_async(lambda: run.adapter.health.state is HealthState.DEGRADED)
                assert run.adapter.health.reason == f"cannot listen on {listen}: " + (
                    "Address already in use"
                )


async def test_a_refused_registration_is_shown_and_tried_again() -> None:
    async with unhurried() as town:
        town.fail(refuse("setWebhook", 400, "Bad Request: bad webhook", times=3))
        async with listening(town) as (run, _):
            assert run.clock.slept[:3] == sorted(run.clock.slept[:3])


async def test_without_an_address_nothing_is_registered_but_posts_are_taken() -> None:
    async with unhurried() as town, listening(town, url="") as (run, address):
        assert await post(address, update()) == 200

        assert town.count("setWebhook") == 0
        assert run.inbox.texts == ["hello"]


@requirement("design.delivery.telegram_probe")
async def test_a_lost_send_is_settled_once_telegram_has_posted_what_waited() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with listening(town) as (run, _):
            said = await chat.say("hello")
            await run.inbox.until(lambda: run.inbox.texts)
            run.account_for(chat.id, said.id)
            town.fail(Fault(trouble=Trouble.CUT_BEFORE, method="sendMessage"))
            delivery = run.delivery(dm(), Part(kind=DeliveryKind.TEXT, body="done"))
            with pytest.raises(DeliveryUnsure):
                await run.adapter.send(delivery)

            assert await run.adapter.settle_unsure(delivery) is None
