"""Channels with a model and a system prompt of their own."""

from pathlib import Path

import pytest

from gateway.domain.errors import ModelRejected
from gateway.domain.ids import ChatType, Place
from gateway.runtime.config import GatewayConfig
from gateway.runtime.deterministic import refusing
from gateway.runtime.overrides import ChannelOverride, Overrides
from gateway.runtime.runtime import RuntimeConfig
from tests.fakes.house import ADMIN, running
from tests.fakes.loopback import PLATFORM, chat
from tests.fakes.model import ScriptedModel, says
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

GENERAL = RuntimeConfig(gateway=GatewayConfig(system_prompt="GENERAL"))


def topic(number: int, thread: str) -> Place:
    return Place(platform=PLATFORM, chat=str(number), chat_type=ChatType.TOPIC, thread=thread)


def overrides(**channels: ChannelOverride) -> Overrides:
    names = {name.removeprefix("c").replace("t", ":"): item for name, item in channels.items()}
    return Overrides(channels={(PLATFORM, ""): names})


@requirement("platform.channel_overrides")
async def test_a_channel_and_its_threads_have_their_own_model_and_prompt(tmp_path: Path) -> None:
    general, own = ScriptedModel(name="general"), ScriptedModel(name="own")
    different = overrides(
        c5=ChannelOverride(provider=own, system_prompt="OWN"),
        c5t7=ChannelOverride(system_prompt="TOPIC"),
    )
    places = (chat(1), chat(5), topic(5, "6"), topic(5, "7"))
    async with running(tmp_path, general, config=GENERAL, overrides=different) as house:
        for place in places:
            await house.say("hi", place=place)
            await house.replies(1, place=place)

    asked = [request.system for request in own.requests]
    assert len(general.requests) == 1
    assert "GENERAL" in general.requests[0].system
    assert ["OWN" in text for text in asked] == [True, True, False]
    assert "TOPIC" in asked[2]
    assert not any("GENERAL" in text for text in asked)


async def test_where_the_own_model_cannot_be_used_none_answers(tmp_path: Path) -> None:
    general = ScriptedModel()
    broken = refusing(ModelRejected("of chat 5", "it needs a key"))
    different = overrides(c5=ChannelOverride(provider=broken))
    async with running(tmp_path, general, overrides=different) as house:
        await house.say("secret", place=chat(5))
        (said,) = await house.replies(1, place=chat(5))

    assert said == "The model of chat 5 could not answer (it needs a key)."
    assert general.requests == []


async def test_what_an_admin_chooses_goes_before_the_channels_own(tmp_path: Path) -> None:
    own, chosen = ScriptedModel(name="own"), ScriptedModel([says("chosen here")], name="chosen")
    different = overrides(c5=ChannelOverride(provider=own))
    models = {"chosen": chosen}
    async with running(tmp_path, ScriptedModel(), models=models, overrides=different) as house:
        await house.give("model", sender=ADMIN, place=chat(5))
        (shown,) = await house.replies(1, place=chat(5))
        await house.give("model", "chosen", sender=ADMIN, place=chat(5))
        await house.replies(2, place=chat(5))
        await house.say("hi", place=chat(5))
        texts = await house.replies(3, place=chat(5))

    assert shown.startswith("**own** answers here, as configured for this channel.")
    assert texts[2] == "chosen here"
