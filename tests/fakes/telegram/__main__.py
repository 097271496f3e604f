"""The server as a process of its own: `python -m tests.fakes.telegram [--port N] [--state FILE]`.

Prints one line of JSON: `base_url` for the program under test, `driver_url` for the test, which
posts JSON to `driver_url/<verb>`. Ends at SIGTERM; with `--state` it goes on where it ended.
"""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from aiohttp import web

from tests.fakes.telegram import telegram_server
from tests.fakes.telegram.kept import load, save
from tests.fakes.telegram.rates import UNLIMITED, Rates
from tests.fakes.telegram.state import Json, World
from tests.fakes.telegram.town import Town
from tests.fakes.telegram.verbs import VERBS


async def serve(*, port: int, world: World | None, state: Path | None, unlimited: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    rates = UNLIMITED if unlimited else Rates()
    # The driver asks for the violations itself: every one is allowed to get that far.
    async with telegram_server(rates=rates, world=world, port=port, allow_violations=[""]) as town:
        runner = web.AppRunner(_driver(town), access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        driver_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        line = json.dumps({"base_url": town.base_url, "driver_url": driver_url})
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        await stop.wait()
        await runner.cleanup()
        if state is not None:
            save(town.service.world, state)


def _driver(town: Town) -> web.Application:
    async def drive(request: web.Request) -> web.Response:
        verb = VERBS.get(request.match_info["verb"])
        if verb is None:
            return web.json_response({"error": "no such verb"}, status=404)
        args: Json = await request.json() if request.can_read_body else {}
        try:
            return web.json_response({"result": await verb(town, args)})
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            return web.json_response({"error": problem}, status=400)

    app = web.Application(client_max_size=60_000_000)
    app.router.add_post("/{verb}", drive)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fakes.telegram")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--state", type=Path, default=None)
    parser.add_argument("--unlimited", action="store_true", help="no rate limits")
    given = parser.parse_args()
    state: Path | None = given.state
    world = load(state) if state is not None and state.exists() else None
    asyncio.run(serve(port=given.port, world=world, state=state, unlimited=given.unlimited))


if __name__ == "__main__":
    main()
