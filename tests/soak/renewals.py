"""Lets several processes find one rotating sign-in expired at the same instant, again and again.

Each round ends every access token; then all processes send their requests at once through the
product's own client. Counted: the renewals, the requests, and the replays that the authorization
server saw. With kills, one process is ended by SIGKILL in the middle of a round, and replaced.
Run as `python -m tests.soak.renewals --rounds N [--kills N]`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from gateway.runtime.clock import SystemClock
from mcp_host.oauth.keeper import TokenKeeper
from mcp_host.oauth.login import sign_in
from mcp_host.oauth.tokens import TokenStore
from mcp_host.server_config import ServerConfig
from mcp_host.transports.client import make_client
from tests.fakes.oauth.process import ROOT, OAuthProcess, oauth_process
from tests.mcp_host.oauth.signing import Willing
from tests.soak.command import announced, dice_of, parser, tell

SERVER: Final = "s"
PROCESSES: Final = 2
REQUESTS: Final = 10
"""By each process in each round, all at once."""
LATEST_KILL: Final = 0.03
"""Seconds after a round has begun."""

_PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


def entry(url: str) -> ServerConfig:
    return ServerConfig.model_validate({"url": url, "transport": "http", "auth": "oauth"})


async def child(url: str, folder: Path) -> None:
    """Send the requests of a round for each line that comes; print how they were answered."""
    config = entry(url)
    keeper = TokenKeeper(SERVER, config, store=TokenStore(folder), environ={}, clock=SystemClock())
    async with make_client(SERVER, config, keeper) as client:

        async def one() -> str:
            try:
                answer = await client.post(url, content=_PING, headers=_HEADERS)
            except Exception as error:  # noqa: BLE001 - what happened is what is counted
                return type(error).__name__
            return "let by" if answer.status_code not in {401, 403} else str(answer.status_code)

        await client.get(url)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while await asyncio.to_thread(sys.stdin.readline):
            said = await asyncio.gather(*(one() for _ in range(REQUESTS)))
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
    await keeper.close()


@contextmanager
def process(url: str, folder: Path) -> Generator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.soak.renewals", "--child", url, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield running
        finally:
            running.kill()


class Person(Willing):
    """Says yes to a world in another process."""

    def __init__(self, process_of: OAuthProcess) -> None:
        super().__init__()
        self._process = process_of

    async def show_link(self, link: Any) -> None:
        back = await asyncio.to_thread(self._process.do, "approve", url=link.url)
        await self.browse(back)


def log_in(world: OAuthProcess, store: TokenStore) -> None:
    person, clock = Person(world), SystemClock()
    asyncio.run(
        sign_in(SERVER, entry(world.url), store=store, person=person, environ={}, clock=clock)
    )


def race(rounds: int, *, kills: int = 0, seed: int = 0) -> Mapping[str, Any]:
    """Run the rounds and return what was counted; `problems` says what must not have been."""
    dice = dice_of(seed)
    killed_in = frozenset(dice.sample(range(rounds), min(kills, rounds)))
    with (
        tempfile.TemporaryDirectory() as home,
        oauth_process(rotates=True, detects_reuse=True) as world,
        ExitStack() as stack,
    ):
        match = Race(world, Path(home) / "mcp-tokens", stack)
        for number in range(rounds):
            match.round(number, kill_after=dice.uniform(0, LATEST_KILL), kill=number in killed_in)
        replays = world.do("status")["replays"]
    if not kills and replays:
        match.problems.append(f"{replays} refresh tokens were sent twice")
    return {
        "answers": match.answers,
        "rounds": rounds,
        "kills": len(killed_in),
        "replays": replays,
        "problems": match.problems,
        "seed": seed,
    }


class Race:
    """The processes, what they were answered, and what must not have been."""

    def __init__(self, world: OAuthProcess, folder: Path, stack: ExitStack) -> None:
        self.answers: dict[str, int] = {}
        self.problems: list[str] = []
        self._world = world
        self._folder = folder
        self._store = TokenStore(folder)
        self._stack = stack
        log_in(world, self._store)
        self._running = [self._start() for _ in range(PROCESSES)]

    def round(self, number: int, *, kill_after: float, kill: bool) -> None:
        """End every access token, let all ask at once, and look at what came of it."""
        before = len(self._world.token_posts("refresh_token"))
        self._world.do("expire")
        for one in self._running:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        if kill:
            time.sleep(kill_after)
            os.kill(self._running[0].pid, signal.SIGKILL)
            self._running[0].wait()
        for one in self._running[1:] if kill else self._running:
            self._count(one)
        if self._store.read(SERVER) is None:
            self.problems.append(f"round {number}: no token file")
        renewals = len(self._world.token_posts("refresh_token")) - before
        if kill:
            self._running[0] = self._start()
            # The answer to a renewal may have died with its process: nobody else can have it.
            log_in(self._world, self._store)
        elif renewals != 1:
            self.problems.append(f"round {number}: {renewals} renewals")

    def _count(self, one: "subprocess.Popen[str]") -> None:
        assert one.stdout is not None
        for said in json.loads(one.stdout.readline()):
            self.answers[said] = self.answers.get(said, 0) + 1

    def _start(self) -> "subprocess.Popen[str]":
        return self._stack.enter_context(process(self._world.url, self._folder))


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        asyncio.run(child(sys.argv[2], Path(sys.argv[3])))
        return 0
    options = parser(__doc__, kills=0)
    options.add_argument("--rounds", type=int, default=25)
    given = options.parse_args()
    seed = announced(given.seed)
    return tell(
        race(given.rounds, kills=given.kills, seed=seed), histogram="answers", path=given.json
    )


if __name__ == "__main__":
    sys.exit(main())
