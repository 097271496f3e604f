import json
from typing import Any

import pytest

from mcp_host.oauth.cimd import (
    PORTS,
    BadDocument,
    check_document,
    check_url,
    document,
    redirect_uris,
)
from mcp_host.oauth.fetch import Fetched, Fetcher
from mcp_host.server_config import ServerConfig
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

URL = "https://me.example/oauth/client.json"


class Hosted(Fetcher):
    """Has one document; what is hosted behind a redirect is never reached."""

    def __init__(self, body: object, *, status: int = 200, kind: str = "application/json") -> None:
        super().__init__("s", ServerConfig.model_validate({"url": "https://x"}), {})
        text = body if isinstance(body, str) else json.dumps(body)
        self._answer = (status, kind, text.encode())

    async def look(self, url: str) -> Fetched:
        status, kind, body = self._answer
        headers = {"content-type": kind, "location": "/elsewhere"}
        return Fetched(url=url, status=status, headers=headers, body=body)


async def refused(hosted: Hosted) -> str:
    """Return the rule that a document breaks."""
    with pytest.raises(BadDocument) as caught:
        await check_document(hosted, URL)
    return str(caught.value)


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://me.example/client.json", "https://"),
        ("me.example/client.json", "https://"),
        ("https:///client.json", "a host"),
        ("https://[::1/client.json", "no URL"),
        ("https://me.example:x/client.json", "no URL"),
        ("https://me.example", "a path"),
        ("https://me.example/", "a path"),
        ("https://me.example?a=b", "a path"),
        ("https://me.example/client.json#", "fragment"),
        ("https://me.example/client.json#me", "fragment"),
        ("https://you@me.example/client.json", "user"),
        ("https://you:pw@me.example/client.json", "user"),
        ("https://@me.example/client.json", "user"),
        ("https://me.example/a/../client.json", r"\.\."),
        ("https://me.example/./client.json", r"\.\."),
        ("https://me.example/a/..", r"\.\."),
        ("https://me.example/%2e%2E/client.json", r"\.\."),
        ("https://me.example/a/.%2e/client.json", r"\.\."),
        ("https://me.example/cli ent.json", "spaces"),
        ("https://me.example/über.json", "ASCII"),
    ],
)
def test_a_url_that_can_be_no_client_id_is_refused_with_the_rule(url: str, rule: str) -> None:
    with pytest.raises(BadDocument, match=rule):
        check_url(url)


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize(
    "url", [URL, "https://me.example:8443/c", "https://me.example/a..b/.well-known/c?v=1"]
)
def test_any_other_url_can_be_one(url: str) -> None:
    assert check_url(url) == url


@requirement("oauth.cimd.validation")
async def test_the_document_that_we_print_is_the_one_that_we_take() -> None:
    await check_document(Hosted(dict(document(URL))), URL)
    await check_document(Hosted(dict(document(URL)), kind="application/json; charset=utf-8"), URL)


@requirement("oauth.cimd.validation")
def test_it_names_all_ten_addresses() -> None:
    assert len(set(redirect_uris())) == 10
    for host in ("127.0.0.1", "localhost"):
        for port in range(27890, 27895):
            assert f"http://{host}:{port}/callback" in redirect_uris()
    assert PORTS == (27890, 27891, 27892, 27893, 27894)


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize(
    ("status", "rule"),
    [(301, "redirects"), (302, "redirects"), (308, "redirects"), (404, "HTTP 404"), (204, "200")],
)
async def test_a_document_that_is_not_there_is_refused(status: int, rule: str) -> None:
    said = await refused(Hosted(dict(document(URL)), status=status))
    assert rule in said


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize("kind", ["text/html", "", "text/plain; application/json", "text/json"])
async def test_a_document_of_another_kind_is_refused(kind: str) -> None:
    said = await refused(Hosted(dict(document(URL)), kind=kind))
    assert "application/json" in said


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize("body", ["", "[]", "null", "{", "<html>"])
async def test_a_document_that_is_no_object_is_refused(body: str) -> None:
    said = await refused(Hosted(body))
    assert "no JSON object" in said


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize(
    "client_id", [None, "", "https://me.example/oauth/client.json?", "https://ME.example/x", 1]
)
async def test_a_document_of_another_url_is_refused(client_id: Any) -> None:
    said = await refused(Hosted({**document(URL), "client_id": client_id}))
    assert "client_id" in said


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize("lacking", redirect_uris())
async def test_a_document_that_lacks_one_address_is_refused_with_it(lacking: str) -> None:
    left = [uri for uri in redirect_uris() if uri != lacking]
    said = await refused(Hosted({**document(URL), "redirect_uris": left}))
    assert said == f"lacks {lacking} among its redirect_uris"


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize("uris", [None, "http://127.0.0.1:27890/callback", {}])
async def test_a_document_without_a_list_of_addresses_is_refused(uris: object) -> None:
    said = await refused(Hosted({**document(URL), "redirect_uris": uris}))
    assert "27890" in said


def test_nothing_is_printed_for_a_url_that_will_not_do() -> None:
    with pytest.raises(BadDocument):
        document("https://me.example")
