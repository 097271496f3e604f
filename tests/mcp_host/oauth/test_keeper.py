"""The keeper of one server's tokens, against an authorization server that remembers everything."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from gateway.domain.errors import NeedsLogin, ServerUnavailable, ToolHostError
from mcp_host.oauth.discovery import Challenge
from tests.fakes.oauth import Known, Method, Trouble, oauth_world
from tests.mcp_host.oauth.signing import SERVER, Signing, entry
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

REFUSED = Challenge(status=401)
HOUR = 3_600


@requirement("case.oa2")
async def test_a_renewal_that_gives_no_refresh_token_keeps_the_one_before(tmp_path: Path) -> None:
    clock = ManualClock()
    async with oauth_world(clock=clock, rotates=False, repeats_refresh_token=False) as world:
        signing = Signing(tmp_path, world, clock)
        first = await signing.sign_in()
        clock.advance(2 * HOUR)

        token = await signing.keeper().token()

        assert token != first.access_token
        assert signing.stored().refresh_token == first.refresh_token
        clock.advance(2 * HOUR)
        assert await signing.keeper().token() != token


@requirement("case.oa3")
async def test_a_token_that_ended_while_nobody_ran_is_renewed_before_it_is_used(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with oauth_world(clock=clock) as world:
        signing = Signing(tmp_path, world, clock)
        await signing.sign_in()
        clock.advance(30 * 24 * HOUR)

        token = await signing.keeper().token()

        assert world.books.valid(token, world.now()) is not None
        assert len(world.token_posts("refresh_token")) == 1


@requirement("case.oa4")
async def test_a_refused_token_is_renewed_once_where_the_metadata_say(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        world.expire()
        world.seen.clear()

        token = await signing.keeper().renewed(first.access_token, REFUSED)

        assert world.books.valid(token, world.now()) is not None
        assert [seen.path for seen in world.seen if seen.method == "POST"] == ["/oauth/token"]
        assert world.at("/.well-known/oauth-authorization-server")


@requirement("fault.f39", "case.oa5")
async def test_calls_that_are_refused_together_renew_once(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        keeper = signing.keeper()
        world.expire()

        calls = [keeper.renewed(first.access_token, REFUSED) for _ in range(20)]
        tokens = await asyncio.gather(*calls)

        assert len(set(tokens)) == 1
        assert len(world.token_posts("refresh_token")) == 1


@requirement("case.oa5", "fault.f42")
async def test_two_keepers_of_one_file_renew_once(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        world.expire()

        calls = [signing.keeper().renewed(first.access_token, REFUSED) for _ in range(5)]
        tokens = await asyncio.gather(*calls)

        assert len(set(tokens)) == 1
        assert len(world.token_posts("refresh_token")) == 1


@requirement("case.oa6")
async def test_a_rotated_refresh_token_is_on_disk_before_its_access_token_is_used(
    tmp_path: Path,
) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        world.expire()

        token = await signing.keeper().renewed(first.access_token, REFUSED)

        # Nobody has had a step in between: what was returned is what the file holds.
        assert signing.stored().access_token == token
        assert signing.stored().refresh_token not in {None, first.refresh_token}


async def test_tokens_that_cannot_be_written_are_not_used(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        before = signing.store.path(SERVER).read_bytes()
        keeper = signing.keeper()
        world.expire()
        signing.store.path(SERVER).unlink()
        signing.store.path(SERVER).mkdir()

        with pytest.raises(ToolHostError, match="is not used"):
            await keeper.renewed(first.access_token, REFUSED)

        assert not world.token_posts("refresh_token")
        signing.store.path(SERVER).rmdir()
        signing.store.path(SERVER).write_bytes(before)
        assert await keeper.renewed(first.access_token, REFUSED)


@requirement("case.oa7")
@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(status=500),
        Trouble(status=503, error="temporarily_unavailable"),
        Trouble(status=429, retry_after=5),
        Trouble(status=500, error="invalid_grant"),
        Trouble(status=400, error="server_error"),
        Trouble(status=404),
        Trouble(cut=True),
    ],
    ids=str,
)
async def test_an_answer_that_is_no_word_on_the_grant_leaves_the_file(
    tmp_path: Path, trouble: Trouble
) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        keeper = signing.keeper()
        world.expire()
        world.trouble.append(trouble)

        with pytest.raises(ServerUnavailable):
            await keeper.renewed(first.access_token, REFUSED)

        assert signing.stored().refresh_token == first.refresh_token
        assert await keeper.renewed(first.access_token, REFUSED) != first.access_token


@requirement("case.oa1", "fault.f40")
async def test_a_dead_refresh_token_ends_the_sign_in_and_is_never_sent_again(
    tmp_path: Path,
) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        keeper = signing.keeper()
        world.expire()
        world.revoke()

        said: set[str] = set()
        for _ in range(12):
            with pytest.raises(NeedsLogin) as raised:
                await keeper.renewed(first.access_token, REFUSED)
            said.add(str(raised.value))

        assert said == {
            f"server {SERVER}: needs login (the sign-in has ended): run `hermes mcp login {SERVER}`"
        }
        assert len(world.token_posts("refresh_token")) == 1
        assert signing.stored().refresh_token is None
        assert signing.stored().client is not None


@requirement("case.oa1")
async def test_an_ended_sign_in_of_a_client_of_ones_own_is_told_as_one(tmp_path: Path) -> None:
    known = Known(client_id="ours", secret="0urs-secret", method=Method.BASIC)
    async with oauth_world(clients=(known,)) as world:
        signing = Signing(tmp_path, world)
        config = entry(world, client_id="ours", client_secret="0urs-secret")
        first = await signing.sign_in(config)
        world.expire()
        world.revoke()
        with pytest.raises(NeedsLogin):
            await signing.keeper(config).renewed(first.access_token, REFUSED)

        # Another process finds a file with no token, and with no client either.
        with pytest.raises(NeedsLogin, match="the sign-in has ended"):
            await signing.keeper(config).token()

        assert (await signing.sign_in(config)).access_token


@requirement("case.oa19")
async def test_an_ended_token_without_refresh_token_needs_a_login_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    async with oauth_world(clock=clock, refresh_for="nobody") as world:
        signing = Signing(tmp_path, world, clock)
        await signing.sign_in()
        clock.advance(2 * HOUR)
        world.seen.clear()

        with pytest.raises(NeedsLogin, match=f"run `hermes mcp login {SERVER}`"):
            await signing.keeper().token()

        assert not world.seen


async def test_without_a_file_nothing_is_asked_of_anybody(tmp_path: Path) -> None:
    async with oauth_world() as world:
        with pytest.raises(NeedsLogin, match="nobody is signed in"):
            await Signing(tmp_path, world).keeper().token()

        assert not world.seen


@requirement("fault.f41")
async def test_a_refresh_token_never_goes_to_another_issuer(tmp_path: Path) -> None:
    clock = ManualClock()
    async with oauth_world(clock=clock) as world:
        signing = Signing(tmp_path, world, clock)
        first = await signing.sign_in()
        world.change(issuer_path="/another")
        keeper = signing.keeper()
        clock.advance(HOUR - 5)

        # So near its end it would be renewed; it may end its time instead.
        assert await keeper.token() == first.access_token
        assert signing.stored().refresh_token is None
        clock.advance(6)
        with pytest.raises(NeedsLogin):
            await keeper.token()
        assert not world.token_posts("refresh_token")


@requirement("fault.f41")
async def test_another_issuer_and_a_refused_token_need_a_login(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        world.change(issuer_path="/another")
        world.expire()

        with pytest.raises(NeedsLogin, match="somebody else signs people in"):
            await signing.keeper().renewed(first.access_token, REFUSED)

        assert not world.token_posts("refresh_token")


@requirement("oauth.tokens.bound")
async def test_tokens_for_another_address_are_not_sent(tmp_path: Path) -> None:
    async with oauth_world() as world, oauth_world() as other:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        elsewhere = Signing(tmp_path, other)

        with pytest.raises(NeedsLogin, match="another address"):
            await elsewhere.keeper().token()

        assert not other.seen
        assert await signing.keeper().token()


@requirement("oauth.tokens.hand_written")
async def test_a_file_written_by_hand_is_used_and_bound_at_its_first_use(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        given = await signing.sign_in()
        client = given.client
        assert client is not None
        by_hand = {
            "access_token": given.access_token,
            "token_type": "Bearer",
            "expires_in": HOUR,
            "refresh_token": given.refresh_token,
        }
        signing.write_by_hand(json.dumps(by_hand))
        config = entry(world, client_id=client.client_id)

        assert await signing.keeper(config).token() == given.access_token

        bound = signing.stored()
        assert (bound.url, bound.issuer) == (world.url, world.issuer)
        world.expire()
        renewed = await signing.keeper(config).renewed(given.access_token, REFUSED)
        assert signing.stored().access_token == renewed


@requirement("oauth.tokens.hand_written")
async def test_a_file_that_was_cut_off_needs_a_login_and_stays(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        path = signing.write_by_hand('{"access_token": "abc')

        with pytest.raises(NeedsLogin, match="was cut off"):
            await signing.keeper().token()

        assert path.read_text() == '{"access_token": "abc'


@requirement("case.oa20")
async def test_a_login_of_somebody_else_is_taken_over_at_the_next_use(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        keeper = signing.keeper()
        with pytest.raises(NeedsLogin):
            await keeper.token()

        signed = await signing.sign_in()

        assert await keeper.token() == signed.access_token


async def test_a_caller_who_goes_away_leaves_the_renewal_to_the_others(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        keeper = signing.keeper()
        world.expire()
        world.answers_tokens.clear()
        gone = asyncio.create_task(keeper.renewed(first.access_token, REFUSED))
        stays = asyncio.create_task(keeper.renewed(first.access_token, REFUSED))
        await eventually_async(lambda: bool(world.token_posts("refresh_token")))
        gone.cancel()
        await asyncio.wait({gone})
        world.answers_tokens.set()

        assert await stays == signing.stored().access_token
        assert len(world.token_posts("refresh_token")) == 1


async def test_an_end_in_the_middle_of_a_renewal_keeps_the_new_tokens(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        keeper = signing.keeper()
        world.expire()
        world.answers_tokens.clear()
        call = asyncio.create_task(keeper.renewed(first.access_token, REFUSED))
        await eventually_async(lambda: bool(world.token_posts("refresh_token")))
        call.cancel()
        closing = asyncio.create_task(keeper.close())
        await asyncio.sleep(0)
        world.answers_tokens.set()
        await closing

        assert signing.stored().access_token != first.access_token


async def test_a_token_near_its_end_serves_while_it_cannot_be_renewed(tmp_path: Path) -> None:
    clock = ManualClock()
    async with oauth_world(clock=clock) as world:
        signing = Signing(tmp_path, world, clock)
        first = await signing.sign_in()
        world.change(trouble=Trouble(status=503))
        clock.advance(HOUR - 5)

        assert await signing.keeper().token() == first.access_token

        clock.advance(6)
        with pytest.raises(ServerUnavailable):
            await signing.keeper().token()


@requirement("oauth.step_up")
async def test_a_lacking_scope_is_remembered_for_the_next_login(tmp_path: Path) -> None:
    async with oauth_world(tool_scopes={"write": "write"}, scopes=("mcp",)) as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        keeper = signing.keeper()

        needed = await keeper.lacks("write")

        assert f"run `hermes mcp login {SERVER}`" in str(needed)
        assert signing.stored().wanted_scope == "write"
        world.change(scopes=("mcp", "write"))
        wider = await signing.sign_in()
        assert set((wider.scope or "").split()) == {"mcp", "write"}
        assert signing.stored().wanted_scope is None


async def test_a_client_that_signs_in_by_itself_needs_nobody(tmp_path: Path) -> None:
    known = Known(client_id="robot", secret="r0b0t-secret", method=Method.BASIC)
    clock = ManualClock()
    async with oauth_world(clock=clock, clients=(known,), client_credentials=True) as world:
        signing = Signing(tmp_path, world, clock)
        config = entry(
            world, client_id="robot", client_secret="r0b0t-secret", flow="client_credentials"
        )
        keeper = signing.keeper(config)

        first = await keeper.token()
        assert await keeper.token() == first
        clock.advance(2 * HOUR)
        assert await keeper.token() != first

        assert len(world.token_posts("client_credentials")) == 2
        assert "r0b0t" not in signing.store.path(SERVER).read_text()


async def test_no_token_is_in_any_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        world.expire()
        second = await signing.keeper().renewed(first.access_token, REFUSED)
        world.revoke()
        world.expire()
        with pytest.raises(NeedsLogin):
            await signing.keeper().renewed(second, REFUSED)

    secrets = {first.access_token, first.refresh_token, second, signing.stored().refresh_token}
    for secret in secrets - {None, ""}:
        assert str(secret) not in caplog.text


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_an_hour_off_costs_a_renewal_and_no_sign_in(
    tmp_path: Path, hours: int
) -> None:
    theirs, ours = ManualClock(), ManualClock()
    ours.advance(2 * HOUR)
    theirs.advance((2 + hours) * HOUR)
    async with oauth_world(clock=theirs) as world:
        signing = Signing(tmp_path, world, ours)
        await signing.sign_in()
        keeper = signing.keeper()
        token = await keeper.token()
        for clock in (theirs, ours):
            clock.advance(1.5 * HOUR)

        token = await keeper.token()
        if world.books.valid(token, world.now()) is None:
            token = await keeper.renewed(token, REFUSED)

        assert world.books.valid(token, world.now()) is not None
        assert len(world.token_posts("refresh_token")) == 1
