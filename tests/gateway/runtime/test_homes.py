"""`/sethome`: who may choose the home channel, and for how long that holds."""

from pathlib import Path

import pytest

from gateway.domain.conversation import Channel
from gateway.domain.ids import Actor
from gateway.domain.operations.upkeep import SetHome
from tests.fakes.house import ADMIN, running
from tests.fakes.loopback import PLATFORM, chat
from tests.fakes.model import ScriptedModel
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("target.sethome")
async def test_a_home_that_somebody_chose_survives_a_restart_and_the_configuration(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, ScriptedModel()) as house:
        await house.give("sethome", sender=ADMIN, place=chat(7))
        assert "home channel now" in (await house.replies(1, place=chat(7)))[0]
        await house.give("sethome", place=chat(8))
        assert "may not use /sethome" in (await house.replies(1, place=chat(8)))[0]

    async with running(tmp_path, ScriptedModel(), first=10) as house:
        named = Actor(platform="config", id=PLATFORM)
        await house.store.set_home(SetHome(place=chat(9), by=named, default=True))
        home = await house.readers.channels.resolve(PLATFORM)

        assert isinstance(home, Channel)
        assert home.place.chat == chat(7).chat
