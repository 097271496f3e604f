from typing import Any

import pytest

from mcp_host.oauth.config import OAuthConfig
from mcp_host.oauth.places import choose_ports, redirect_path, redirect_uri
from mcp_host.oauth.tokens import Client
from tests.support.requirement import requirement

CIMD = (27890, 27891, 27892, 27893, 27894, 0)


def oauth(**keys: Any) -> OAuthConfig:
    return OAuthConfig.model_validate(keys)


def ports(config: OAuthConfig, *, cimd: bool = False, before: str | None = None) -> tuple[int, ...]:
    stored = None if before is None else Client(client_id="me", redirect_uri=before)
    return choose_ports(config, cimd=cimd, stored=stored)


@requirement("oauth.cimd.ports", "oauth.cimd.none_by_default")
def test_the_document_pins_its_ports_and_nothing_else_does() -> None:
    assert ports(oauth(), cimd=True) == CIMD
    assert ports(oauth()) == (0,)


@requirement("case.oa12")
@pytest.mark.parametrize("cimd", [True, False])
@pytest.mark.parametrize(
    "uri", ["http://localhost:3118/callback", "http://127.0.0.1:3118/", "http://[::1]:3118/x?y=z"]
)
def test_a_redirect_to_this_machine_is_awaited_on_its_port(uri: str, *, cimd: bool) -> None:
    config = oauth(redirect_uri=uri)

    assert ports(config, cimd=cimd, before="http://127.0.0.1:4711/callback") == (3118,)
    assert ports(oauth(redirect_uri=uri, redirect_port=9), cimd=cimd) == (3118,)
    assert redirect_uri(config, 3118) == uri


def test_a_redirect_to_this_machine_without_a_port_means_that_of_http() -> None:
    assert ports(oauth(redirect_uri="http://localhost/callback")) == (80,)


@pytest.mark.parametrize("cimd", [True, False])
def test_a_port_of_the_entry_is_the_only_one(*, cimd: bool) -> None:
    assert ports(oauth(redirect_port=8765), cimd=cimd, before="http://localhost:1/") == (8765,)


@pytest.mark.parametrize("uri", ["https://gateway.example/cb", "https://localhost:8443/cb"])
def test_a_proxy_leads_to_the_port_of_the_entry_or_to_any(uri: str) -> None:
    assert ports(oauth(redirect_uri=uri, redirect_port=8765)) == (8765,)
    assert ports(oauth(redirect_uri=uri)) == (0,)
    assert redirect_uri(oauth(redirect_uri=uri), 8765) == uri
    assert redirect_path(oauth(redirect_uri=uri)) == "/cb"


def test_a_client_that_was_registered_keeps_its_port_when_it_can() -> None:
    assert ports(oauth(), before="http://127.0.0.1:4711/callback") == (4711, 0)
    assert ports(oauth(), before="https://gateway.example/callback") == (0,)


def test_a_browser_comes_back_to_the_callback_under_the_chosen_host() -> None:
    assert redirect_uri(oauth(), 4711) == "http://127.0.0.1:4711/callback"
    assert redirect_uri(oauth(redirect_host="localhost"), 5) == "http://localhost:5/callback"
    assert redirect_path(oauth()) == "/callback"
    assert redirect_path(oauth(redirect_uri="https://gateway.example")) == "/"
