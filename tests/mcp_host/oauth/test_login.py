"""Logins to the end: who we say we are, what is asked for, and what ends them."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.domain.errors import ServerUnavailable, ToolHostError
from gateway.ports.signing_in import DeviceCode, SignInLink
from mcp_host.oauth.config import Flow
from mcp_host.oauth.discovery import Challenge
from tests.fakes.clock import HastyClock
from tests.fakes.oauth import (
    DeviceState,
    Known,
    Method,
    Registration,
    Trouble,
    approve,
    oauth_world,
)
from tests.mcp_host.oauth.signing import SERVER, Pasting, Signing, Willing, entry
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

DOCUMENT = "https://client.invalid/hermes.json"
"""Nobody can look at it from here, which is only told: the authorization server has to reach it."""


class Refusing(Willing):
    """Says no to each device."""

    async def show_code(self, code: DeviceCode) -> None:
        await Pasting.show_code(self, code)
        assert self.world is not None
        self.world.decide(code.user_code, DeviceState.DENIED)


class Fumbling(Pasting):
    """Pastes a few wrong lines, then the redirect or its query."""

    def __init__(self, *, bare: bool) -> None:
        super().__init__()
        self.bare = bare

    async def show_link(self, link: SignInLink) -> None:
        await super().show_link(link)
        back = await approve(link.url)
        wrong = "http://127.0.0.1/callback?code=x&state=wrong"
        right = urlsplit(back).query if self.bare else back
        for line in ("", "what do I do here?", wrong, right):
            self.lines.put_nowait(line)


class Twice(Willing):
    """Begins another login while the first waits."""

    def __init__(self, signing: Signing) -> None:
        super().__init__()
        self.signing = signing
        self.problem = ""

    async def show_link(self, link: SignInLink) -> None:
        try:
            await self.signing.sign_in()
        except ToolHostError as error:
            self.problem = error.problem
        await super().show_link(link)


def asked(person: Pasting) -> dict[str, str]:
    """Return the parameters of the page that was opened last."""
    query = parse_qs(urlsplit(person.links[-1].url).query)
    return {name: values[0] for name, values in query.items()}


@requirement("oauth.identification")
async def test_a_client_of_the_configuration_never_registers(tmp_path: Path) -> None:
    known = Known(client_id="ours", secret="s3cr3t-of-ours", method=Method.BASIC)
    async with oauth_world(clients=(known,), cimd=True) as world:
        signing = Signing(tmp_path, world)
        person = Willing()

        config = entry(world, client_id="ours", client_secret="s3cr3t-of-ours")
        await signing.sign_in(config, person=person, document_url=DOCUMENT)

        assert asked(person)["client_id"] == "ours"
        assert not world.at("/oauth/register")
        assert "s3cr3t" not in signing.store.path(SERVER).read_text()


@requirement("oauth.identification")
async def test_where_a_document_is_read_it_comes_before_registration(tmp_path: Path) -> None:
    async with oauth_world(cimd=True) as world:
        person = Willing()
        signing = Signing(tmp_path, world)

        await signing.sign_in(person=person, document_url=DOCUMENT)

        assert asked(person)["client_id"] == DOCUMENT
        assert person.links[0].port in range(27890, 27895)
        assert not world.at("/oauth/register")


@requirement("oauth.identification")
@pytest.mark.parametrize("oauth", [{}, {"cimd": False}], ids=["not read", "switched off"])
async def test_else_a_client_is_registered(tmp_path: Path, oauth: dict[str, object]) -> None:
    async with oauth_world(cimd="cimd" in oauth) as world:
        person = Willing()

        await Signing(tmp_path, world).sign_in(
            entry(world, **oauth), person=person, document_url=DOCUMENT
        )

        (registration,) = world.at("/oauth/register")
        assert registration.json["redirect_uris"] == [person.links[0].redirect_uri]
        assert registration.json["application_type"] == "native"


async def test_a_document_of_the_entry_comes_before_the_one_of_all_servers(tmp_path: Path) -> None:
    own = "https://client.invalid/own.json"
    async with oauth_world(cimd=True) as world:
        person = Willing()
        config = entry(world, client_metadata_url=own)

        await Signing(tmp_path, world).sign_in(config, person=person, document_url=DOCUMENT)

        assert asked(person)["client_id"] == own


async def test_a_scope_of_the_entry_is_what_is_asked_for(tmp_path: Path) -> None:
    async with oauth_world() as world:
        person = Willing()

        await Signing(tmp_path, world).sign_in(entry(world, scope=["read", "write"]), person=person)

        assert set(asked(person)["scope"].split()) >= {"read", "write"}


@pytest.mark.parametrize("method", [Method.BASIC, Method.POST])
async def test_a_client_is_shown_at_the_token_endpoint_as_the_entry_says(
    method: Method, tmp_path: Path
) -> None:
    known = Known(client_id="ours", secret="s3cr3t-of-ours", method=method)
    async with oauth_world(clients=(known,)) as world:
        config = entry(
            world,
            client_id="ours",
            client_secret="s3cr3t-of-ours",
            token_endpoint_auth_method=method.value,
        )
        await Signing(tmp_path, world).sign_in(config, person=Willing())

        # The fake takes no other way than the one it knows of the client.
        (exchange,) = world.at("/oauth/token")
        assert ("authorization" in exchange.headers) is (method is Method.BASIC)


@requirement("oauth.cimd.none_by_default")
async def test_without_a_document_none_is_shown_and_no_port_is_pinned(tmp_path: Path) -> None:
    async with oauth_world(cimd=True) as world:
        person = Willing()

        await Signing(tmp_path, world).sign_in(person=person)

        assert world.at("/oauth/register")
        assert person.links[0].port not in range(27890, 27895)


@requirement("oauth.cimd.off")
async def test_a_document_that_is_not_taken_is_remembered_and_a_client_registered(
    tmp_path: Path,
) -> None:
    async with oauth_world(cimd=True, cimd_at_token=False) as world:
        signing = Signing(tmp_path, world)
        person = Willing()

        await signing.sign_in(person=person, document_url=DOCUMENT)

        assert (signing.store.directory / f"{SERVER}.cimd-off").exists()
        assert len(person.links) == 2
        assert world.books.valid(signing.stored().access_token, world.now()) is not None


@requirement("oauth.cimd.off")
async def test_a_document_refused_at_a_renewal_is_remembered_until_the_next_login(
    tmp_path: Path,
) -> None:
    async with oauth_world(cimd=True) as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in(document_url=DOCUMENT)
        world.change(cimd_at_token=False)
        world.expire()

        with pytest.raises(ToolHostError, match=f"run `hermes mcp login {SERVER}`"):
            await signing.keeper().renewed(first.access_token, Challenge(status=401))
        marker = signing.store.directory / f"{SERVER}.cimd-off"
        assert marker.exists()

        world.change(cimd_at_token=True)
        await signing.sign_in(document_url=DOCUMENT)
        assert not marker.exists()


@requirement("case.oa14")
async def test_where_none_can_register_a_client_of_ones_own_is_asked_for(tmp_path: Path) -> None:
    async with oauth_world(registration=Registration.UNKNOWN) as world:
        signing = Signing(tmp_path, world)

        with pytest.raises(ToolHostError, match=r"set oauth\.client_id"):
            await signing.sign_in()

        assert not [seen for seen in world.seen if "register" in seen.path]
        assert signing.store.read(SERVER) is None


async def test_a_refused_registration_asks_for_a_client_too(tmp_path: Path) -> None:
    async with oauth_world(registration=Registration.REFUSED) as world:
        with pytest.raises(ToolHostError, match=r"HTTP 400.*set oauth\.client_id"):
            await Signing(tmp_path, world).sign_in()


@requirement("case.oa17")
async def test_every_request_says_who_asks_and_a_name_of_ones_own_goes_to_the_token_endpoint(
    tmp_path: Path,
) -> None:
    async with oauth_world(wants_user_agent=True) as world:
        signing = Signing(tmp_path, world)
        config = entry(world, user_agent="Special/1.0")
        await signing.sign_in(config)
        world.expire()
        await signing.keeper(config).renewed(signing.stored().access_token, Challenge(status=401))

        ours = [seen for seen in world.seen if "Mozilla" not in seen.headers["user-agent"]]
        special = {seen.path for seen in ours if seen.headers["user-agent"] == "Special/1.0"}
        assert special == {"/oauth/token"}
        assert all(seen.headers["user-agent"] == "Special/1.0" for seen in world.token_posts())


@requirement("case.oa22")
async def test_parameters_of_the_entry_are_in_the_link(tmp_path: Path) -> None:
    async with oauth_world(refresh_for="offline") as world:
        person = Willing()
        config = entry(world, authorize_params={"access_type": "offline"})

        tokens = await Signing(tmp_path, world).sign_in(config, person=person)

        assert asked(person)["access_type"] == "offline"
        assert tokens.refresh_token is not None
        assert not person.told


@requirement("case.oa22")
async def test_a_grant_without_refresh_token_is_warned_of(tmp_path: Path) -> None:
    async with oauth_world(refresh_for="offline") as world:
        person = Willing()

        await Signing(tmp_path, world).sign_in(person=person)

        assert any("authorize_params" in told for told in person.told)


@requirement("oauth.login.paste_back")
@pytest.mark.parametrize("bare", [False, True])
async def test_a_pasted_redirect_signs_in_after_a_wrong_one(tmp_path: Path, bare: bool) -> None:
    async with oauth_world() as world:
        person = Fumbling(bare=bare)
        tokens = await Signing(tmp_path, world).sign_in(person=person)

        assert world.books.valid(tokens.access_token, world.now()) is not None
        assert len(person.told) == 2
        assert len(person.links) == 1


@requirement("oauth.login.paste_back")
async def test_cancel_ends_a_login_and_stores_nothing(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing, person = Signing(tmp_path, world), Pasting()
        person.lines.put_nowait(" Cancel ")

        with pytest.raises(ToolHostError, match="cancelled"):
            await signing.sign_in(person=person)

        assert signing.store.read(SERVER) is None


async def test_a_failed_login_leaves_the_sign_in_before(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        before = await signing.sign_in()
        world.trouble.append(Trouble(status=400, error="invalid_grant"))

        with pytest.raises(ToolHostError, match="invalid_grant"):
            await signing.sign_in()

        assert signing.stored() == before


async def test_a_login_without_a_person_takes_the_place_of_what_was_there_once_it_is_granted(
    tmp_path: Path,
) -> None:
    known = Known(client_id="robot", secret="r0b0t-secret", method=Method.BASIC)
    async with oauth_world(clients=(known,), client_credentials=True) as world:
        signing = Signing(tmp_path, world)
        robot = entry(
            world, client_id="robot", client_secret="r0b0t-secret", flow="client_credentials"
        )
        before = await signing.sign_in(robot)
        world.trouble.append(Trouble(status=503))
        with pytest.raises(ServerUnavailable):
            await signing.sign_in(robot)
        assert signing.stored() == before

        signing.write_by_hand('{"access_token": "cut o')
        person = Willing()
        after = await signing.sign_in(robot, person=person)

        assert after == signing.stored()
        assert after.access_token != before.access_token
        assert after.login != before.login
        assert len(person.told) == 1
        assert "a sign-in replaces it" in person.told[0]


async def test_two_logins_to_one_server_do_not_meet(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        person = Twice(signing)

        await signing.sign_in(person=person)

        assert person.problem == "another process is signing in to it at this moment"


async def test_a_login_in_a_directory_that_cannot_be_written_asks_nobody(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing, person = Signing(tmp_path, world), Willing()
        signing.store.directory.write_text("in the way")

        with pytest.raises(ToolHostError, match="cannot be made"):
            await signing.sign_in(person=person)

        assert not person.links


@requirement("oauth.login.device")
async def test_a_device_code_signs_in_through_waiting_and_slowing_down(tmp_path: Path) -> None:
    clock = HastyClock()
    async with oauth_world(device=True, slow_downs=2, clock=clock) as world:
        signing = Signing(tmp_path, world, clock)
        person = Willing(world=world)

        await signing.sign_in(person=person, flow=Flow.DEVICE)

        (code,) = person.codes
        assert code.user_code
        assert code.url.startswith(world.authority_origin)
        assert clock.slept[:3] == [5, 10, 15]
        assert not person.links
        assert signing.stored().refresh_token


@requirement("oauth.login.device")
async def test_a_server_without_device_codes_says_so(tmp_path: Path) -> None:
    async with oauth_world() as world:
        with pytest.raises(ToolHostError, match="no sign-in by device code"):
            await Signing(tmp_path, world).sign_in(flow=Flow.DEVICE)


@requirement("oauth.login.device")
async def test_a_person_who_refuses_a_device_ends_the_login(tmp_path: Path) -> None:
    clock = HastyClock()
    async with oauth_world(device=True, clock=clock) as world:
        person = Refusing(world=world)
        with pytest.raises(ToolHostError, match="refused"):
            await Signing(tmp_path, world, clock).sign_in(person=person, flow=Flow.DEVICE)


@requirement("oauth.figma")
@pytest.mark.parametrize("given", ["", "Mine"])
async def test_a_name_of_ones_own_is_registered_else_ours(tmp_path: Path, given: str) -> None:
    async with oauth_world() as world:
        config = entry(world, client_name=given) if given else entry(world)

        await Signing(tmp_path, world).sign_in(config)

        (registration,) = world.at("/oauth/register")
        assert registration.json["client_name"] == (given or "Hermes Gateway")


async def test_what_is_stored_names_its_server_issuer_and_client(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()

        written = json.loads(signing.store.path(SERVER).read_text())

        assert written["url"] == world.url
        assert written["issuer"] == written["client"]["issuer"] == world.issuer
        assert written["expires_at"] > world.now()
