"""What a service, or whoever stands before it, answers is read no further than it may be long."""

import gzip
import json
import tracemalloc
from collections.abc import AsyncGenerator
from typing import Final

import pytest
from aiohttp import web
from pydantic import SecretStr
from telegram import error as sdk

from adapters.telegram.bounds import MAX_ANSWER_BYTES
from adapters.telegram.client import Client, open_client
from adapters.telegram.config import TelegramAccount
from tests.adapters.telegram.rig import TOKEN
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FINE: Final = {"ok": True, "result": {"id": 1, "is_bot": True, "first_name": "b", "username": "b"}}


class Service:
    """Answers each method as `way` says."""

    def __init__(self) -> None:
        self.way = "fine"
        self.given = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        match self.way:
            case "packed":
                body = gzip.compress(b" " * 200_000_000, compresslevel=1)
                return web.Response(body=body, headers={"content-encoding": "gzip"})
            case "deep":
                return web.Response(body=b'{"ok": true, "result": ' + b"[" * 100_000)
            case "endless":
                return await self._endless(request)
            case _:
                assert request.headers["accept-encoding"] == "identity"
                return web.Response(body=json.dumps(FINE).encode())

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" " * 1_000_000)
            self.given += 1_000_000


@pytest.fixture
async def asked() -> AsyncGenerator[tuple[Service, Client]]:
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    account = TelegramAccount(token=SecretStr(TOKEN), base_url=root)
    async with open_client(account) as client:
        yield service, client
    await runner.cleanup()


@requirement("threat.s21")
@pytest.mark.parametrize("way", ["packed", "deep", "endless"])
async def test_an_answer_without_measure_is_trouble_like_any_other(
    asked: tuple[Service, Client], way: str
) -> None:
    service, client = asked
    await client.bot.get_me()
    service.way = way

    tracemalloc.start()
    try:
        with pytest.raises(sdk.TelegramError):
            await client.bot.get_me()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    with pytest.raises(sdk.TelegramError):
        await client.poll(offset=0, hold=0)

    # The service of the test packs its bomb in this process.
    assert way == "packed" or peak < 8 * MAX_ANSWER_BYTES
    assert service.given < 200_000_000

    service.way = "fine"
    assert (await client.bot.get_me()).username == "b"
