"""A real gateway process and bare bots on the fake Telegram, for the benches of the service.

The fake runs in the bench's own process, so that the moment it has an update and the moment a call
arrives are taken by one clock; a server on this machine takes the time of its start by the same.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fakes.telegram import UNLIMITED, ChatDriver, Town, telegram_server
from tests.fakes.telegram.town import BotDriver
from tests.support.chat import ROOT
from tests.support.gateway import Gateway

FIRST_PERSON: Final = 1_000
REST_SECONDS: Final = 0.03
"""After each round, so that what follows a reply does not run into the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """One bot, and the chats of people of whom each wrote to nobody else.

    Many, since a gateway says about one thing a second to one person.
    """

    driver: BotDriver
    chats: Sequence[ChatDriver]


def bot_with_people(town: Town, number: int, *, people: int) -> Bot:
    """Return the bot of that number and as many people who have started it."""
    driver = town.bot(
        f"{number}:AAF-fake_token_of_a_bench_only_0000", username=f"bench_{number}_bot"
    )
    first = FIRST_PERSON * number
    return Bot(
        driver=driver,
        chats=[
            town.private(town.user(first + n, f"Person {n}"), bot=driver) for n in range(people)
        ],
    )


@asynccontextmanager
async def telegram() -> AsyncGenerator[Town]:
    """Serve the fake without its limits: what is measured is not its patience."""
    async with telegram_server(rates=UNLIMITED) as town:
        yield town


def _write_home(home: Path, config: Mapping[str, object]) -> None:
    home.mkdir(mode=0o700)
    # JSON is YAML.
    (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")


@asynccontextmanager
async def gateway_of(
    town: Town, bot: Bot, home: Path, **sections: Mapping[str, object]
) -> AsyncGenerator[Gateway]:
    """Run `hermes gateway run` on a new home as that bot, with the given sections."""
    account = {
        "token": bot.driver.token,
        "base_url": town.base_url,
        "allow_from": [str(chat.id) for chat in bot.chats],
        # The bots beside it answer in one piece as well.
        "streaming": False,
    }
    # What is measured writes faster than people do.
    unhurried = {"rate": {"user_per_minute": 0, "chat_per_minute": 0}}
    written = {"platforms": {"telegram": account}, "access": unhurried, **sections}
    _write_home(home, written)
    # The fake must go on serving in this loop meanwhile.
    with await asyncio.to_thread(Gateway, home) as gateway:
        yield gateway
        assert await asyncio.to_thread(gateway.end) == 0, gateway.stderr


@asynccontextmanager
async def bare_bot(town: Town, bot: Bot, *options: str) -> AsyncGenerator[int]:
    """Run `bench.bare_bot` as that bot; the value is its process id."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.bare_bot",
        town.base_url,
        bot.driver.token,
        *options,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline(), "the bare bot ended before it was connected"
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


async def answered(town: Town, chat: ChatDriver, text: str) -> float:
    """Let somebody write; return the ms until the call with the first reply arrives."""
    before = len(town.calls)
    began = town.service.now()
    await chat.say(text)
    call = await town.until(
        lambda: next(
            (
                call
                for call in town.calls[before:]
                if call.chat == chat.id and call.method == "sendMessage"
            ),
            None,
        ),
        what="a reply",
    )
    await town.until(lambda: call.status, what="the end of the send")
    await asyncio.sleep(REST_SECONDS)
    return float(call.at - began) * 1000


def asked_last(record: Path) -> str:
    """Return the body of the last request a recording model got, as JSON."""
    line = record.read_text(encoding="utf-8").splitlines()[-1]
    return json.dumps(json.loads(line)["body"])
