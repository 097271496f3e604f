"""Proves that things really arrive: what the history has and nobody told us of, a dead socket kept.

A socket can answer pings and bring nothing. So the chats we are in are looked at from time to time;
a message that is there and was not heard replaces every socket, and is taken from the history.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from adapters.slack.receiving import Reception
from gateway.domain.errors import AdapterError
from gateway.ports import Clock

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 45.0
"""Between looks; with what a look takes, a deaf socket is gone within two minutes."""
FAILED_SECONDS: Final = 20.0


class History(Protocol):
    """What was said in the chats of an account."""

    async def catch_up(self, *, all_chats: bool) -> int:
        """Hand over what was missed; returns how many messages nobody had told us of.

        Raises:
            AdapterError: It could not be read.
        """
        ...


class Watchdog:
    """One for an app; `generation` counts how often its sockets had to go."""

    def __init__(
        self, reception: Reception, histories: Mapping[str, History], clock: Clock
    ) -> None:
        self._reception = reception
        self._histories = histories
        self._clock = clock
        self._deaf = asyncio.Event()
        self.generation = 0

    def was_deaf(self) -> None:
        """Say that nobody listened for a while: everything is looked through at once."""
        for feed in self._reception.feeds:
            feed.backlog(waits=True)
        self._deaf.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            missed_some = await self._pause()
            try:
                missed = 0
                for team, history in list(self._histories.items()):
                    missed += await history.catch_up(all_chats=missed_some)
                    self._caught_up(team)
            except AdapterError as error:
                logger.warning("what was said on Slack cannot be looked through: %s", error)
                if missed_some:
                    self._deaf.set()
                await self._clock.sleep(FAILED_SECONDS)
                continue
            if missed and not missed_some:
                logger.warning("Slack's sockets brought nothing of %d messages; replaced", missed)
                self.generation += 1

    async def _pause(self) -> bool:
        """Wait for the next look; True when nobody listened before it."""
        waiting = asyncio.ensure_future(self._deaf.wait())
        resting = asyncio.ensure_future(self._clock.sleep(LOOK_SECONDS))
        try:
            await asyncio.wait((waiting, resting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            resting.cancel()
        was, _ = self._deaf.is_set(), self._deaf.clear()
        return was

    def _caught_up(self, team: str) -> None:
        for feed in self._reception.feeds:
            if feed.us.team == team:
                feed.backlog(waits=False)
