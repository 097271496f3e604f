"""What must end a login without a token: an answer that somebody else could have made."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.domain.errors import ToolHostError
from gateway.ports.signing_in import SignInLink
from tests.fakes.oauth import Iss, approve, oauth_world
from tests.mcp_host.oauth.signing import SERVER, Pasting, Signing, Willing
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


class PastingAtOnce(Pasting):
    """Has a browser that cannot get back, and pastes where it wanted to go."""

    async def show_link(self, link: SignInLink) -> None:
        await super().show_link(link)
        self.lines.put_nowait(await approve(link.url))


class Sent(Pasting):
    """Says yes, and has a browser that somebody sends to another answer."""

    def __init__(self, answer: str = "") -> None:
        super().__init__()
        self.answer = answer

    async def show_link(self, link: SignInLink) -> None:
        await super().show_link(link)
        given = await approve(link.url)
        query = self.answer or urlsplit(given).query.replace("state=", "state=x")
        await self.browse(f"{link.redirect_uri}?{query}")


async def ends(signing: Signing, person: Pasting, match: str) -> None:
    """Show that a login ends with that reason, and leaves no token."""
    with pytest.raises(ToolHostError, match=match):
        await signing.sign_in(person=person)
    assert signing.store.read(SERVER) is None


@requirement("threat.s15")
@pytest.mark.parametrize("person", [Willing, PastingAtOnce])
@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        ({"iss": Iss.WRONG}, "iss differs"),
        ({"iss": Iss.WRONG, "advertises_iss": False}, "iss differs"),
        ({"iss": Iss.ABSENT}, "iss is missing"),
        ({"consent": False}, "access_denied"),
        ({"iss": Iss.WRONG, "consent": False}, "iss differs"),
    ],
)
async def test_an_answer_that_is_not_from_who_was_asked_ends_it_before_a_code_is_sent(
    tmp_path: Path, person: type[Pasting], wanted: dict[str, Any], match: str
) -> None:
    async with oauth_world(**wanted) as world:
        await ends(Signing(tmp_path, world), person(), match)

        assert world.token_posts() == []


@requirement("threat.s15")
async def test_a_browser_with_another_state_ends_it(tmp_path: Path) -> None:
    async with oauth_world() as world:
        await ends(Signing(tmp_path, world), Sent(), "its state differs")

        assert world.token_posts() == []


@requirement("threat.s15")
async def test_the_answer_of_an_earlier_login_ends_a_later_one(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing, first = Signing(tmp_path, world), Willing()
        await signing.sign_in(person=first)
        signing.store.remove(SERVER)
        answer = first.pages[0].request.url.query.decode()

        await ends(signing, Sent(answer), "its state differs")
        assert len(world.token_posts()) == 1


@requirement("threat.s15")
async def test_each_login_has_a_state_and_a_challenge_of_its_own(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing, person = Signing(tmp_path, world), Willing()
        for _ in range(2):
            await signing.sign_in(person=person)

    asked = [parse_qs(urlsplit(link.url).query) for link in person.links]
    for name in ("state", "code_challenge"):
        first, second = (query[name][0] for query in asked)
        assert first != second
        assert len(first) >= 43
    assert {query["code_challenge_method"][0] for query in asked} == {"S256"}
