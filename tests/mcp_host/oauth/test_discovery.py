"""Who signs people in: the places where metadata can be, and what they must not say."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.oauth.discovery import Challenge, Discovery, Found, challenge_of
from mcp_host.oauth.fetch import Fetcher
from tests.fakes.loopback_http import Answer, Request
from tests.fakes.oauth import MetadataAt, ResourceAt, Settings, World, oauth_world
from tests.mcp_host.oauth.signing import Signing, entry
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


async def find(world: World, challenge: Challenge | None = None) -> Found:
    async with Fetcher("s", entry(world), {}) as fetcher:
        return await Discovery("s", world.url, fetcher).find(challenge)


@requirement("case.oa18")
@pytest.mark.parametrize("resource_at", [ResourceAt.HEADER, ResourceAt.PATH, ResourceAt.ROOT])
@pytest.mark.parametrize(
    ("metadata_at", "issuer_path"),
    [
        (MetadataAt.OAUTH, ""),
        (MetadataAt.OAUTH, "/tenant/1"),
        (MetadataAt.OPENID, ""),
        (MetadataAt.OPENID, "/tenant/1"),
        (MetadataAt.OPENID_SUFFIX, "/tenant/1"),
    ],
)
async def test_a_login_finds_metadata_wherever_it_may_be(
    tmp_path: Path, resource_at: ResourceAt, metadata_at: MetadataAt, issuer_path: str
) -> None:
    wanted = Settings(resource_at=resource_at, metadata_at=metadata_at, issuer_path=issuer_path)
    async with oauth_world(wanted) as world:
        tokens = await Signing(tmp_path, world).sign_in()

        assert tokens.issuer == world.issuer
        assert world.books.valid(tokens.access_token, world.now()) is not None


@requirement("case.oa18")
async def test_a_server_of_2025_03_26_has_its_metadata_at_its_own_origin(tmp_path: Path) -> None:
    wanted = Settings(resource_at=ResourceAt.NOWHERE, metadata_at=MetadataAt.ORIGIN)
    async with oauth_world(wanted) as world:
        tokens = await Signing(tmp_path, world).sign_in()

        assert tokens.issuer == world.resource_origin


@requirement("case.oa18")
async def test_the_place_in_the_challenge_comes_before_all_others() -> None:
    async with oauth_world(resource_at=ResourceAt.HEADER) as world:
        challenge = Challenge(status=401, metadata_url=f"{world.resource_origin}/about/resource")

        await find(world, challenge)

        asked = [seen.path for seen in world.seen]
        assert asked == ["/about/resource", "/.well-known/oauth-authorization-server"]


@requirement("case.oa18")
@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_place_that_refuses_is_no_end_of_the_search(status: int) -> None:
    async with oauth_world(resource_at=ResourceAt.ROOT) as world:

        async def refuse(request: Request, answer: Answer) -> bool:
            if not request.path.endswith("oauth-protected-resource/mcp"):
                return False
            await answer.json(status, {})
            return True

        world.before = refuse

        assert (await find(world)).server.issuer == world.issuer


@requirement("case.oa18")
@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_place_that_cannot_say_now_ends_the_search(status: int) -> None:
    async with oauth_world(resource_at=ResourceAt.ROOT) as world:

        async def fail(request: Request, answer: Answer) -> bool:
            if not request.path.endswith("oauth-protected-resource/mcp"):
                return False
            await answer.json(status, {})
            return True

        world.before = fail

        with pytest.raises(ServerUnavailable):
            await find(world)


@requirement("case.oa18")
async def test_a_slash_behind_a_root_issuer_is_no_difference() -> None:
    async with oauth_world(named_suffix="/") as world:
        assert (await find(world)).server.issuer == world.issuer


@requirement("case.oa18")
@pytest.mark.parametrize(
    "wanted",
    [
        {"issuer_path": "/tenant", "named_suffix": "/"},
        {"said_issuer": "https://another.example"},
    ],
    ids=["a slash behind a path", "another host"],
)
async def test_metadata_of_another_issuer_are_refused(wanted: dict[str, Any]) -> None:
    async with oauth_world(**wanted) as world:
        with pytest.raises(ToolHostError, match=r"another issuer|no OAuth metadata"):
            await find(world)


async def test_a_description_of_another_resource_is_refused() -> None:
    async with oauth_world(resource="https://elsewhere.example/mcp") as world:
        with pytest.raises(ToolHostError, match="another resource"):
            await find(world)


async def test_a_server_without_metadata_is_told_from_one_that_fails() -> None:
    wanted = Settings(resource_at=ResourceAt.NOWHERE, metadata_at=MetadataAt.NOWHERE)
    async with oauth_world(wanted) as world:
        with pytest.raises(ToolHostError, match="publishes no OAuth metadata") as raised:
            await find(world)

        assert not raised.value.retryable


@pytest.mark.parametrize(
    ("header", "scope", "error"),
    [
        ('Bearer scope="a b", error="insufficient_scope"', "a b", "insufficient_scope"),
        ("Bearer scope=a, error=invalid_token", "a", "invalid_token"),
        ('Bearer error_description="scope=x", scope="y"', "y", None),
        ("Basic realm=x", None, None),
        ("", None, None),
        (r'Bearer scope="a\"b"', 'a"b', None),
    ],
)
def test_a_challenge_is_read(header: str, scope: str | None, error: str | None) -> None:
    challenge = challenge_of(401, {"www-authenticate": header})

    assert (challenge.scope, challenge.error) == (scope, error)


@given(st.text(max_size=300))
def test_any_challenge_is_read_without_a_failure(header: str) -> None:
    challenge_of(401, {"www-authenticate": header})
