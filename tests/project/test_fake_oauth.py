"""The authorization server of the tests, with the SDK's client as a judge that is not ours."""

import base64
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.fakes.oauth import (
    DeviceState,
    Known,
    MetadataAt,
    Method,
    Registration,
    ResourceAt,
    Trouble,
    World,
    approve,
    oauth_world,
)
from tests.fakes.oauth.process import oauth_process
from tests.fakes.oauth.tokens import DEVICE_GRANT
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio

REDIRECT = "http://127.0.0.1:3000/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode()[:43]
ANNA = Known(client_id="anna", redirect_uris=(REDIRECT,))


class Kept:
    """The SDK's storage, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def sdk_client(world: World, kept: Kept | None = None) -> AsyncGenerator[Client]:
    answers: list[dict[str, list[str]]] = []

    async def redirect(url: str) -> None:
        answers.append(parse_qs(urlsplit(await approve(url)).query))

    async def callback() -> AuthorizationCodeResult:
        query = answers.pop()
        return AuthorizationCodeResult(
            code=query["code"][0], state=query["state"][0], iss=query.get("iss", [None])[0]
        )

    about = OAuthClientMetadata(redirect_uris=[AnyUrl(REDIRECT)], client_name="judge")
    provider = OAuthClientProvider(world.url, about, kept or Kept(), redirect, callback)
    async with (
        httpx2.AsyncClient(auth=provider, trust_env=False) as http,
        Client(streamable_http_client(world.url, http_client=http), mode="legacy") as client,
    ):
        yield client


async def said(client: Client, text: str) -> str:
    result = await client.call_tool("echo", {"text": text})
    return result.content[0].model_dump()["text"]


@pytest.mark.parametrize("resource_at", [ResourceAt.HEADER, ResourceAt.PATH, ResourceAt.ROOT])
@pytest.mark.parametrize(
    ("metadata_at", "path"),
    [
        (MetadataAt.OAUTH, ""),
        (MetadataAt.OAUTH, "/tenant"),
        (MetadataAt.OPENID, ""),
        (MetadataAt.OPENID, "/tenant"),
        (MetadataAt.OPENID_SUFFIX, "/tenant"),
    ],
)
async def test_the_sdk_signs_in_wherever_the_documents_are(
    resource_at: ResourceAt, metadata_at: MetadataAt, path: str
) -> None:
    async with (
        oauth_world(resource_at=resource_at, metadata_at=metadata_at, issuer_path=path) as world,
        sdk_client(world) as client,
    ):
        assert await said(client, "hi") == "hi"
        assert len(world.token_posts("authorization_code")) == 1


async def test_the_sdk_signs_in_at_an_origin_that_plays_both_parts() -> None:
    async with (
        oauth_world(resource_at=ResourceAt.NOWHERE, metadata_at=MetadataAt.ORIGIN) as world,
        sdk_client(world) as client,
    ):
        assert await said(client, "hi") == "hi"


@pytest.mark.parametrize("method", list(Method))
async def test_the_sdk_shows_who_it_is_in_the_way_it_was_registered(method: Method) -> None:
    async with oauth_world(registered_method=method) as world, sdk_client(world) as client:
        assert await said(client, "hi") == "hi"


async def test_the_sdk_renews_an_expired_token_and_the_old_refresh_token_ends_the_sign_in() -> None:
    kept = Kept()
    clock = ManualClock()
    async with (
        oauth_world(clock=clock, registered_method=Method.NONE) as world,
        sdk_client(world, kept) as client,
    ):
        assert await said(client, "one") == "one"
        first = kept.tokens
        assert first is not None
        clock.advance(4_000)
        # What the SDK knows of the end of a token is on a clock of its own.
        form = {**refreshing(world, kept), "refresh_token": first.refresh_token}
        renewed = await posted(world, form)
        again = await posted(world, form)
        last = await posted(world, {**form, "refresh_token": renewed.json()["refresh_token"]})

    assert renewed.status_code == 200
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert last.json()["error"] == "invalid_grant"
    assert world.books.replays == 1


async def test_a_lost_answer_leaves_the_client_with_a_token_that_was_used() -> None:
    kept = Kept()
    public = Method.NONE
    async with oauth_world(registered_method=public) as world, sdk_client(world, kept) as client:
        await said(client, "one")
        assert kept.tokens is not None
        form = {**refreshing(world, kept), "refresh_token": kept.tokens.refresh_token}
        world.trouble.append(Trouble(after=True, cut=True))
        with pytest.raises(httpx.TransportError):
            await posted(world, form)
        assert (await posted(world, form)).json()["error"] == "invalid_grant"


def refreshing(world: World, kept: Kept) -> dict[str, Any]:
    assert kept.client is not None
    client_id = kept.client.client_id
    return {"grant_type": "refresh_token", "resource": world.resource, "client_id": client_id}


async def posted(world: World, form: dict[str, Any]) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.post(f"{world.issuer}/oauth/token", data=form)


def authorize_url(world: World, **changed: str) -> str:
    asked = {
        "response_type": "code",
        "client_id": "anna",
        "redirect_uri": REDIRECT,
        "state": "s",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": world.resource,
        **changed,
    }
    return f"{world.issuer}/oauth/authorize?{urlencode(asked)}"


def exchange(world: World, code: str, **changed: str) -> dict[str, Any]:
    return {
        "grant_type": "authorization_code",
        "client_id": "anna",
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "resource": world.resource,
        **changed,
    }


async def code_of(url: str) -> str:
    return parse_qs(urlsplit(await approve(url)).query)["code"][0]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:3001/callback"}, "invalid_grant"),
        ({"resource": "https://else.example/mcp"}, "invalid_target"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_secret": "guessed"}, "invalid_client"),
    ],
)
async def test_a_code_is_worth_nothing_without_what_it_was_bound_to(
    changed: dict[str, str], error: str
) -> None:
    async with oauth_world(clients=(ANNA,)) as world:
        code = await code_of(authorize_url(world))
        refused = await posted(world, exchange(world, code, **changed))
        granted = await posted(world, exchange(world, code))
        twice = await posted(world, exchange(world, code))

    assert refused.json()["error"] == error
    assert granted.status_code == 200
    assert twice.json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "changed", [{"redirect_uri": "https://evil.example/"}, {"client_id": "nobody"}]
)
async def test_an_unknown_client_or_redirect_sends_the_browser_nowhere(
    changed: dict[str, str],
) -> None:
    async with oauth_world(clients=(ANNA,)) as world:
        with pytest.raises(AssertionError, match="at the authorization page"):
            await approve(authorize_url(world, **changed))


async def test_a_request_without_pkce_or_consent_goes_back_with_an_error() -> None:
    async with oauth_world(clients=(ANNA,)) as world:
        without = await approve(authorize_url(world, code_challenge_method="plain"))
        world.change(consent=False)
        declined = await approve(authorize_url(world))

    assert "error=invalid_request" in without
    assert "error=access_denied" in declined
    assert "state=s" in declined


async def test_a_device_waits_is_told_to_slow_down_and_gets_tokens_once() -> None:
    clock = ManualClock()
    async with oauth_world(clients=(ANNA,), device=True, clock=clock) as world:
        start = {"client_id": "anna", "resource": world.resource}
        async with httpx.AsyncClient(trust_env=False) as http:
            codes = (await http.post(f"{world.issuer}/oauth/device", data=start)).json()
        poll = {
            "grant_type": DEVICE_GRANT,
            "client_id": "anna",
            "device_code": codes["device_code"],
        }
        heard: list[str] = []
        for wait in (5, 1, 10):
            clock.advance(wait)
            heard.append((await posted(world, poll)).json()["error"])
        world.decide(codes["user_code"])
        clock.advance(10)
        granted = await posted(world, poll)
        clock.advance(10)
        heard.append((await posted(world, poll)).json()["error"])

    assert heard == ["authorization_pending", "slow_down", "authorization_pending", "expired_token"]
    assert granted.json()["refresh_token"]


@pytest.mark.parametrize("state", [DeviceState.DENIED, DeviceState.EXPIRED])
async def test_a_device_hears_what_the_person_decided(state: DeviceState) -> None:
    async with oauth_world(clients=(ANNA,), device=True) as world:
        start = {"client_id": "anna", "resource": world.resource}
        async with httpx.AsyncClient(trust_env=False) as http:
            codes = (await http.post(f"{world.issuer}/oauth/device", data=start)).json()
        world.decide(codes["user_code"], state)
        poll = {
            "grant_type": DEVICE_GRANT,
            "client_id": "anna",
            "device_code": codes["device_code"],
        }
        assert (await posted(world, poll)).json()["error"] == state.value


async def test_a_client_with_a_secret_signs_in_alone_and_another_does_not() -> None:
    robot = Known(client_id="robot", secret="s", method=Method.POST)
    async with oauth_world(clients=(robot, ANNA), client_credentials=True) as world:
        form = {"grant_type": "client_credentials", "resource": world.resource}
        robots = await posted(world, {**form, "client_id": "robot", "client_secret": "s"})
        annas = await posted(world, {**form, "client_id": "anna"})

    assert "refresh_token" not in robots.json()
    assert robots.status_code == 200
    assert annas.json()["error"] == "unauthorized_client"


async def test_tools_may_be_listed_by_everybody_and_called_by_few() -> None:
    listing = ("initialize", "notifications/initialized", "tools/list")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    async with (
        oauth_world(open_methods=listing, registration=Registration.REFUSED) as world,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        hello = await http.post(world.url, json={**call, "method": "initialize"})
        refused = await http.post(world.url, json=call)
        registered = await http.post(
            f"{world.issuer}/oauth/register", json={"redirect_uris": [REDIRECT]}
        )

    assert (hello.status_code, refused.status_code) == (200, 401)
    assert refused.headers["www-authenticate"] == "Bearer"
    assert registered.status_code == 400


async def test_a_tool_that_needs_more_says_which_scope() -> None:
    async with oauth_world(clients=(ANNA,), tool_scopes={"write": "mcp admin"}) as world:
        code = await code_of(authorize_url(world, scope="mcp"))
        token = (await posted(world, exchange(world, code))).json()["access_token"]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write"}}
        async with httpx.AsyncClient(trust_env=False) as http:
            bearer = {"authorization": f"Bearer {token}"}
            refused = await http.post(world.url, json=call, headers=bearer)

    assert refused.status_code == 403
    said = refused.headers["www-authenticate"]
    assert said == 'Bearer error="insufficient_scope", scope="mcp admin"'


async def test_a_firewall_stops_who_does_not_say_what_they_are() -> None:
    async with oauth_world(clients=(ANNA,), wants_user_agent=True) as world:
        place = f"{world.issuer}/.well-known/oauth-authorization-server"
        async with httpx.AsyncClient(trust_env=False, headers={"user-agent": ""}) as http:
            assert (await http.get(place)).status_code == 403
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(place)).status_code == 200


async def test_the_process_does_what_the_server_in_this_process_does() -> None:
    known = {"client_id": "anna", "redirect_uris": [REDIRECT]}
    with oauth_process(clients=[known], access_seconds=60) as world:
        asked = {
            "response_type": "code",
            "client_id": "anna",
            "redirect_uri": REDIRECT,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": world.url,
        }
        url = f"{world.issuer}/oauth/authorize?{urlencode(asked)}"
        redirect: str = world.do("approve", url=url)
        code = parse_qs(urlsplit(redirect).query)["code"][0]
        form = {
            "grant_type": "authorization_code",
            "client_id": "anna",
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            "resource": world.url,
        }
        world.do("trouble", status=503)
        async with httpx.AsyncClient(trust_env=False) as http:
            troubled = await http.post(f"{world.issuer}/oauth/token", data=form)
            granted = await http.post(f"{world.issuer}/oauth/token", data=form)
        world.do("change", access_seconds=5, iss="absent")
        with pytest.raises(AssertionError, match="no setting is called nonsense"):
            world.do("change", nonsense=1)

        assert (troubled.status_code, granted.json()["expires_in"]) == (503, 60)
        assert len(world.token_posts("authorization_code")) == 2
        assert world.do("status")["sign_ins"] == 1
