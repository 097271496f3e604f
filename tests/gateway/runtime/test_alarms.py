from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Account, Actor
from gateway.domain.operations.upkeep import SetHome
from gateway.domain.tools import ServerState, ServerStatus
from gateway.ports import StoreHealth
from gateway.runtime.alarms import TELL_AFTER_SECONDS, Alarms
from gateway.runtime.heartbeat import Heartbeat
from gateway.runtime.status import StatusBoard
from tests.fakes.house import House, running
from tests.fakes.loopback import PLATFORM, LoopbackRenderer, chat
from tests.fakes.model import ScriptedModel
from tests.fakes.tools import FakeTools
from tests.support.clock import NOON, ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

OTHER: Account = ("elsewhere", "")
WELL = Health(state=HealthState.CONNECTED, since=NOON)
TAKEN = Health(state=HealthState.DEGRADED, since=NOON, reason="another program reads it")
AWAY = Health(state=HealthState.DEGRADED, since=NOON, reason="it is down", sends=False)


@dataclass(slots=True, kw_only=True)
class Watch:
    house: House
    alarms: Alarms
    clock: ManualClock
    host: FakeTools
    health: dict[Account, Health] = field(default_factory=dict[Account, Health])
    store: list[StoreHealth] = field(default_factory=lambda: [StoreHealth()])

    async def after(self, seconds: float) -> list[str]:
        """Look once more; return what the owner has been told so far."""
        self.clock.advance(seconds)
        await self.alarms.look()
        rows = self.house.rows("SELECT body FROM delivery WHERE origin = 'notice' ORDER BY id")
        return [body for (body,) in rows]


@asynccontextmanager
async def watching(home: Path) -> AsyncGenerator[Watch]:
    clock = ManualClock()
    async with running(home, ScriptedModel()) as house:
        owner = Actor(platform="config", id=PLATFORM)
        await house.store.set_home(SetHome(place=chat(1), by=owner))
        host = FakeTools()
        health = {(PLATFORM, ""): WELL, OTHER: WELL}
        store = [StoreHealth()]
        board = StatusBoard(
            platforms={
                account: lambda account=account: health[account] for account in tuple(health)
            },
            host=host,
            store=lambda: store[0],
            heartbeat=Heartbeat(clock),
        )
        alarms = Alarms(
            board=board,
            channels=house.readers.channels,
            store=house.store,
            renderers={PLATFORM: LoopbackRenderer()},
            wakeups=house.runtime.wakeups,
            clock=clock,
        )
        yield Watch(house=house, alarms=alarms, clock=clock, health=health, store=store, host=host)


async def test_the_owner_is_told_once_what_is_wrong_and_once_that_it_is_over(
    tmp_path: Path,
) -> None:
    async with watching(tmp_path) as watch:
        watch.health[(PLATFORM, "")] = TAKEN
        assert await watch.after(0) == []
        assert await watch.after(TELL_AFTER_SECONDS - 1) == []
        (begun,) = await watch.after(1)
        assert begun.startswith(f"{PLATFORM.capitalize()} has not received messages since 12:00")
        assert "another program reads it" in begun
        assert await watch.after(3_600) == [begun]

        watch.health[(PLATFORM, "")] = WELL
        told = [begun, f"{PLATFORM.capitalize()} receives messages again."]
        assert await watch.after(1) == told
        assert await watch.after(3_600) == told
        assert await watch.house.replies(2, place=chat(1)) == told


async def test_what_passes_soon_is_not_told(tmp_path: Path) -> None:
    async with watching(tmp_path) as watch:
        watch.health[OTHER] = AWAY
        await watch.after(0)
        watch.health[OTHER] = WELL
        assert await watch.after(TELL_AFTER_SECONDS) == []
        watch.health[OTHER] = AWAY
        assert await watch.after(1) == []


async def test_a_platform_that_is_away_is_told_of_elsewhere_only(tmp_path: Path) -> None:
    async with watching(tmp_path) as watch:
        watch.health[OTHER] = AWAY
        await watch.after(0)
        (told,) = await watch.after(TELL_AFTER_SECONDS)
        assert "it is down" in told

    second = tmp_path / "second"
    second.mkdir()
    async with watching(second) as watch:
        watch.health[(PLATFORM, "")] = AWAY
        await watch.after(0)
        assert await watch.after(TELL_AFTER_SECONDS) == []


@requirement("fault.f14")
async def test_a_store_that_could_not_write_is_told_of_as_soon_as_it_can(tmp_path: Path) -> None:
    async with watching(tmp_path) as watch:
        watch.store[0] = StoreHealth(busy_since=NOON, reason="disk is full")
        await watch.after(0)
        assert await watch.after(TELL_AFTER_SECONDS) == []
        watch.store[0] = StoreHealth()
        (told,) = await watch.after(60)
        assert told == (
            "The database could not be written from 12:00 to 12:02 UTC (disk is full). "
            "Nothing was lost: what came meanwhile is answered now."
        )


@requirement("oauth.headless.told_once")
async def test_the_owner_is_told_once_of_a_server_that_needs_a_login(tmp_path: Path) -> None:
    parked = ServerStatus(
        name="notion",
        state=ServerState.PARKED,
        since=NOON,
        tools=0,
        reason="needs login (nobody is signed in): run `hermes mcp login notion`",
        needs_login=True,
    )
    async with watching(tmp_path) as watch:
        watch.host.parked.append(parked)
        (told,) = await watch.after(0)
        assert "run `hermes mcp login notion`" in told
        for _ in range(12):
            assert len(await watch.after(300)) == 1

        watch.host.parked.clear()
        await watch.after(5)
        watch.host.parked.append(replace(parked, since=NOON + timedelta(days=1)))
        assert len(await watch.after(5)) == 2
