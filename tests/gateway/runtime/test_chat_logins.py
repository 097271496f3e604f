"""`/login` in a chat: the link or code out, the pasted redirect in, and never to the agent."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.errors import ToolHostError
from gateway.domain.ids import ChatType
from gateway.ports.signing_in import DeviceCode, Person, SignInLink
from tests.fakes.house import ADMIN, House, running
from tests.fakes.loopback import BEN, chat
from tests.fakes.model import ScriptedModel
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

LINK = SignInLink(
    url="https://auth.example/page?state=abc",
    port=4000,
    redirect_uri="http://127.0.0.1:4000/callback",
)
BACK = "http://127.0.0.1:4000/callback?code=c0de&state=abc"


class Signing:
    """Implements `SigningIn`: shows a link or a code, and takes one line for the right one."""

    def __init__(self, *, device: bool = False) -> None:
        self.device = device
        self.lines: list[str] = []
        self.signed: list[str] = []

    async def sign_in(self, server: str, person: Person) -> None:
        if server == "unknown":
            raise ToolHostError(server, "is not configured")
        if self.device:
            url = "https://auth.example/device"
            await person.show_code(
                DeviceCode(user_code="WDJB-MJHT", url=url, complete_url=None, seconds=600)
            )
        else:
            await person.show_link(LINK)
        while True:
            self.lines.append(await person.pasted())
            if self.lines[-1] == "cancel":
                raise ToolHostError(server, "the sign-in was cancelled")
            if "state=abc" in self.lines[-1]:
                self.signed.append(server)
                return
            person.tell("that belongs to another sign-in")


async def settled(house: House) -> None:
    """Return when every inbound event has been worked off."""
    await eventually_async(
        lambda: house.rows("SELECT count(*) FROM inbound WHERE state <> 'done'") == [(0,)]
    )


@requirement("oauth.chat_login")
async def test_an_admin_signs_in_by_a_link_and_the_redirect_pasted_back(tmp_path: Path) -> None:
    signing, model = Signing(), ScriptedModel()
    async with running(tmp_path, model, signing=signing) as house:
        await house.give("login", "notion", sender=ADMIN)
        (link,) = await house.replies(1)
        assert LINK.url in link
        assert "Paste" in link

        await house.say("http://127.0.0.1:4000/callback?code=x&state=other", sender=ADMIN)
        assert "another sign-in" in (await house.replies(2))[1]
        await house.say(BACK, sender=ADMIN)

        assert "Signed in to notion" in (await house.replies(3))[2]
        assert signing.signed == ["notion"]
        # The agent has seen nothing of it.
        assert house.rows("SELECT count(*) FROM turn") == [(0,)]
        assert "c0de" not in str(house.rows("SELECT * FROM message"))


@requirement("oauth.chat_login")
async def test_a_device_code_is_shown_and_cancel_ends_it(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(), signing=Signing(device=True)) as house:
        await house.give("login", "notion", sender=ADMIN)
        assert "WDJB-MJHT" in (await house.replies(1))[0]
        await house.say("cancel", sender=ADMIN)

        assert "cancelled" in (await house.replies(2))[1]


@requirement("oauth.chat_login")
async def test_only_an_admin_in_a_direct_message_gets_a_link(tmp_path: Path) -> None:
    group = replace(chat(7), chat_type=ChatType.GROUP)
    async with running(tmp_path, ScriptedModel(), signing=Signing()) as house:
        await house.give("login", "notion")
        assert "may not use /login" in (await house.replies(1))[0]
        await house.give("login", "notion", place=group, sender=ADMIN)
        assert "direct message" in (await house.replies(1, place=group))[0]


async def test_what_somebody_else_pastes_is_a_message_to_the_agent(tmp_path: Path) -> None:
    signing = Signing()
    async with running(tmp_path, ScriptedModel(), signing=signing) as house:
        await house.give("login", "notion", sender=ADMIN)
        await house.replies(1)
        await house.say(BACK, sender=BEN)

        await eventually_async(lambda: house.rows("SELECT count(*) FROM turn") == [(1,)])
        assert not signing.lines


async def test_a_sign_in_that_cannot_begin_says_why(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(), signing=Signing()) as house:
        await house.give("login", "unknown", sender=ADMIN)
        assert "is not configured" in (await house.replies(1))[0]
        await house.give("login", "", sender=ADMIN)
        assert "/login NAME" in (await house.replies(2))[1]


async def test_an_end_of_the_gateway_ends_a_sign_in(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        async with running(tmp_path, ScriptedModel(), signing=Signing()) as house:
            await house.give("login", "notion", sender=ADMIN)
            await house.replies(1)
