"""A stateful Telegram Bot API on a real loopback socket, with people who use its chats.

    async with telegram_server() as town:
        chat = town.private(town.user(111, "Ana"))
        await chat.say("delete the branch")
        card = await chat.wait_for(lambda m: "Allow once" in m.labels)
        press = await chat.press("Allow once", message=card)
        await press.answered()

`town.base_url` is the program's `base_url`, `town.bot().token` its token. In another process it
is `telegram_process()` of `tests.fakes.telegram.process`. Not modelled: parse_mode (send
entities), files by URL, stickers, polls, payments, business accounts; one group with two bots.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from tests.fakes.telegram.driver import ChatDriver, Press
from tests.fakes.telegram.faults import Fault, Trouble, conflict, flood, refuse
from tests.fakes.telegram.rates import UNLIMITED, Budget, Rates
from tests.fakes.telegram.server import Server
from tests.fakes.telegram.service import Call, Limits, Service
from tests.fakes.telegram.state import Message, Person, World
from tests.fakes.telegram.town import Town
from tests.fakes.telegram.webhook import push_all

__all__ = [
    "UNLIMITED",
    "Budget",
    "Call",
    "ChatDriver",
    "Fault",
    "Limits",
    "Message",
    "Person",
    "Press",
    "Rates",
    "Town",
    "Trouble",
    "conflict",
    "flood",
    "refuse",
    "telegram_server",
]


@asynccontextmanager
async def telegram_server(
    *,
    rates: Rates | None = None,
    limits: Limits | None = None,
    world: World | None = None,
    port: int = 0,
    allow_violations: Sequence[str] = (),
) -> AsyncGenerator[Town]:
    """Serve until the end of the block, and hold the program to what Telegram lets it do.

    `allow_violations` are beginnings of those a test provokes.

    Raises:
        AssertionError: at the end, when anything else was violated.
    """
    service = Service(rates=rates or Rates(), limits=limits or Limits(), world=world or World())
    server = Server(service)
    await server.up(port=port)
    pushing = asyncio.create_task(push_all(service), name="telegram:webhooks")
    try:
        yield Town(service=service, server=server)
    finally:
        pushing.cancel()
        with suppress(asyncio.CancelledError):
            await pushing
        await server.down()
    beyond = [v for v in service.violations if not v.startswith(tuple(allow_violations))]
    assert not beyond, "\n".join(["what Telegram would not stand:", *beyond])
