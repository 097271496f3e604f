"""Signing in where nothing is ours: Authlib's authorization server and the SDK's MCP server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.e2e.signing_in import come_back, event_in, signing_in, tokens
from tests.support.chat import ROOT, hermes
from tests.support.eventually import eventually
from tests.support.requirement import requirement

CALL = ("mcp", "call", "s", "shout", '{"text": "hi"}')


class Independent:
    """The two servers, in a process of their own."""

    def __init__(self, url: str, issuer: str) -> None:
        self.url = url
        self.issuer = issuer

    def books(self) -> dict[str, Any]:
        """What happened so far."""
        return httpx.get(f"{self.issuer}/books", trust_env=False).json()

    def exchange(self, **form: str) -> httpx.Response:
        """Ask for tokens as somebody else would."""
        return httpx.post(f"{self.issuer}/exchange", data=form, trust_env=False)

    def is_there(self) -> bool:
        with suppress(httpx.TransportError):
            return bool(self.books())
        return False


@pytest.fixture
def servers() -> Iterator[Independent]:
    command = [sys.executable, "-m", "tests.fakes.oauth.independent"]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            found = Independent(**json.loads(process.stdout.readline()))
            eventually(found.is_there)
            yield found
        finally:
            process.terminate()
            process.wait(20)


def configure(home: Path, servers: Independent, **oauth: object) -> None:
    entry = {"url": servers.url, "auth": "oauth", "oauth": oauth}
    (home / "config.yaml").write_text(json.dumps({"mcp_servers": {"s": entry}}))


def sign_in(home: Path) -> dict[str, Any]:
    """Sign in by a browser that is signed in there; returns how that ended."""
    with signing_in(home, "--no-browser", "--json") as running:
        link = event_in(running)["url"]
        page = httpx.get(link, trust_env=False)
        assert page.status_code == 302, page.text
        assert come_back(page.headers["location"]).status_code == 200
        done = event_in(running)
        assert running.wait() == 0
    return {**done, "link": link, "redirect": page.headers["location"]}


def query_of(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


def let_it_end(home: Path) -> None:
    """Put the end of the access token into the past, as an hour without a process does."""
    path = home / "mcp-tokens" / "s.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "expires_at": 1_700_000_000}))


@requirement("oauth.identification")
@pytest.mark.parametrize("method", [None, "none", "client_secret_basic", "client_secret_post"])
def test_a_person_signs_in_and_calls_a_tool_whatever_the_way_of_showing_who_we_are(
    tmp_path: Path, servers: Independent, method: str | None
) -> None:
    configure(tmp_path, servers, token_endpoint_auth_method=method)

    done = sign_in(tmp_path)
    called = hermes(tmp_path, *CALL)

    assert done["ok"]
    assert (called.returncode, "HI" in called.stdout) == (0, True), called.stderr
    books = servers.books()
    assert (books["granted"], books["refused"]) == ({"authorization_code": 1}, {})
    (client,) = books["clients"]
    if method is not None:
        assert client["about"]["token_endpoint_auth_method"] == method
    asked = query_of(done["link"])
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["resource"] == [servers.url]
    assert query_of(done["redirect"])["iss"] == [servers.issuer]


@requirement("case.oa3")
def test_an_ended_token_is_renewed_again_and_again_with_the_refresh_token_of_the_time(
    tmp_path: Path, servers: Independent
) -> None:
    configure(tmp_path, servers)
    sign_in(tmp_path)
    seen = [tokens(tmp_path)]
    for _ in range(3):
        let_it_end(tmp_path)
        called = hermes(tmp_path, *CALL)
        assert (called.returncode, "HI" in called.stdout) == (0, True), called.stderr
        seen.append(tokens(tmp_path))

    assert len({found["refresh_token"] for found in seen}) == 4
    assert len({found["access_token"] for found in seen}) == 4
    books = servers.books()
    assert books["granted"] == {"authorization_code": 1, "refresh_token": 3}
    assert books["refused"] == {}


@requirement("fault.f40")
def test_a_sign_in_that_a_thief_has_ended_is_said_to_have_ended(
    tmp_path: Path, servers: Independent
) -> None:
    configure(tmp_path, servers, token_endpoint_auth_method="none")
    sign_in(tmp_path)
    stolen = tokens(tmp_path)
    let_it_end(tmp_path)
    assert hermes(tmp_path, *CALL).returncode == 0

    thief = servers.exchange(
        grant_type="refresh_token",
        client_id=stolen["client"]["client_id"],
        refresh_token=stolen["refresh_token"],
    )
    called = hermes(tmp_path, *CALL)

    assert (thief.status_code, thief.json()["error"]) == (400, "invalid_grant")
    assert called.returncode != 0
    assert "hermes mcp login s" in called.stderr + called.stdout
    assert "access_token" not in {name for name, value in tokens(tmp_path).items() if value}
