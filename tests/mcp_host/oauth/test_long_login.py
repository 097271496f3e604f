"""How long a person may take, on an event loop whose time a test moves on."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.domain.errors import ToolHostError
from tests.fakes.oauth import approve, oauth_world
from tests.mcp_host.oauth.signing import SERVER, Pasting, Signing, entry
from tests.support.requirement import requirement


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop that can be told that time has passed."""

    def __init__(self) -> None:
        super().__init__(selectors.DefaultSelector())
        self._leaped = 0.0

    def time(self) -> float:
        return super().time() + self._leaped

    async def leap(self, seconds: float) -> None:
        """Let that time pass, and everything happen that was due in it."""
        self._leaped += seconds
        for _ in range(20):
            await asyncio.sleep(0)


def leaping(main: Callable[[LeapingLoop], Awaitable[None]]) -> None:
    loop = LeapingLoop()
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_awaited(main(loop)))
    finally:
        loop.close()


async def _awaited(work: Awaitable[None]) -> None:
    await work


@requirement("case.oa10")
def test_a_person_who_takes_forty_seconds_has_one_attempt_one_listener_and_one_state(
    tmp_path: Path,
) -> None:
    async def main(loop: LeapingLoop) -> None:
        async with oauth_world() as world:
            signing, person = Signing(tmp_path, world), Pasting()
            config = entry(world).model_copy(update={"connect_timeout": 5})
            login = asyncio.create_task(signing.sign_in(config, person=person))
            await person.shown.wait()
            for _ in range(4):
                await loop.leap(10)
                assert not login.done()

            (link,) = person.links
            await person.browse(await approve(link.url))
            tokens = await login

            assert signing.stored() == tokens
            assert person.links == [link]
            assert len(world.at("/oauth/register")) == 1
            assert len(world.token_posts()) == 1
            assert person.pages[0].status_code == 200
            assert f":{link.port}/" in link.redirect_uri

    leaping(main)


@requirement("case.oa10")
def test_a_second_login_at_the_same_time_is_told_of_the_first(tmp_path: Path) -> None:
    async def main(loop: LeapingLoop) -> None:
        async with oauth_world() as world:
            signing, first, second = Signing(tmp_path, world), Pasting(), Pasting()
            login = asyncio.create_task(signing.sign_in(person=first))
            await first.shown.wait()
            await loop.leap(40)

            with pytest.raises(ToolHostError, match="another process is signing in"):
                await signing.sign_in(person=second)
            assert second.links == []

            await first.browse(await approve(first.links[0].url))
            await login

    leaping(main)


@pytest.mark.parametrize("seconds", [300, 60])
def test_a_login_that_nobody_comes_back_from_ends_when_the_entry_says(
    tmp_path: Path, seconds: int
) -> None:
    async def main(loop: LeapingLoop) -> None:
        async with oauth_world() as world:
            signing, person = Signing(tmp_path, world), Pasting()
            config = entry(world) if seconds == 300 else entry(world, timeout=seconds)
            login = asyncio.create_task(signing.sign_in(config, person=person))
            await person.shown.wait()
            await loop.leap(seconds - 1)
            assert not login.done()
            await loop.leap(2)

            with pytest.raises(ToolHostError) as error:
                await login
            late = f"nobody came back from the sign-in page within {seconds} s"
            assert error.value.problem == late
            assert signing.store.read(SERVER) is None
            assert world.token_posts() == []

    leaping(main)
