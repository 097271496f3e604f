"""The world as a process of its own: `python -m tests.fakes.oauth [--settings JSON]`.

Prints one line of JSON: `url` of the MCP server, `issuer`, and `driver_url` for the test, which
posts JSON to `driver_url/<verb>`. Ends at SIGTERM.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter

from tests.fakes.loopback_http import Answer, Handler, Request, serve
from tests.fakes.oauth import Settings, Trouble, World, approve, oauth_world
from tests.fakes.oauth.books import DeviceState
from tests.fakes.oauth.settings import settings_of

Arguments: TypeAlias = Any
Verb: TypeAlias = Callable[[World, Arguments], Awaitable[object]]


async def run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with oauth_world(settings) as world, serve(lambda _: _driver(world)) as driver:
        line = {
            "url": world.url,
            "issuer": world.issuer,
            "driver_url": f"http://127.0.0.1:{driver.port}",
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        await stop.wait()


def _driver(world: World) -> Handler:
    async def drive(request: Request, answer: Answer) -> None:
        verb = VERBS.get(request.path.removeprefix("/"))
        if verb is None:
            await answer.json(404, {"error": "no such verb"})
            return
        try:
            await answer.json(200, {"result": await verb(world, dict(request.body))})
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            await answer.json(400, {"error": f"{type(error).__name__}: {error}"})

    return drive


async def _approve(world: World, given: Arguments) -> object:
    return await approve(given["url"])


async def _decide(world: World, given: Arguments) -> object:
    state = DeviceState[given.get("state", "approved").upper()]
    world.decide(given["user_code"], state)
    return None


async def _change(world: World, given: Arguments) -> object:
    world.settings = replace(world.settings, **_read(given))
    return None


def _read(given: Arguments) -> dict[str, Any]:
    read = settings_of(given)
    return {name: getattr(read, name) for name in given}


async def _trouble(world: World, given: Arguments) -> object:
    world.trouble.append(TypeAdapter(Trouble).validate_python(given))
    return None


async def _hold(world: World, given: Arguments) -> object:
    world.answers_tokens.clear()
    return None


async def _answer(world: World, given: Arguments) -> object:
    world.answers_tokens.set()
    return None


async def _expire(world: World, given: Arguments) -> object:
    world.expire()
    return None


async def _revoke(world: World, given: Arguments) -> object:
    world.revoke()
    return None


async def _status(world: World, given: Arguments) -> object:
    return {
        "issuer": world.issuer,
        "replays": world.books.replays,
        "misdirected": world.books.misdirected,
        "sign_ins": len(world.books.families),
        "clients": list(world.books.clients),
        "user_codes": [device.user_code for device in world.books.devices.values()],
        "calls": world.calls,
    }


async def _seen(world: World, given: Arguments) -> object:
    return [asdict(seen) for seen in world.at(given.get("path", ""))]


VERBS: Final[dict[str, Verb]] = {
    "approve": _approve,
    "decide": _decide,
    "change": _change,
    "trouble": _trouble,
    "hold": _hold,
    "answer": _answer,
    "expire": _expire,
    "revoke": _revoke,
    "status": _status,
    "seen": _seen,
}
"""What a test can do: each takes an object and returns a value, both as JSON."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fakes.oauth")
    parser.add_argument("--settings", default="{}", help="fields of Settings as JSON")
    asyncio.run(run(settings_of(json.loads(parser.parse_args().settings))))


if __name__ == "__main__":
    main()
