"""The keys of `oauth`: what each takes, and what it refuses before anybody signs in."""

from typing import Any

import pytest
from pydantic import ValidationError

from mcp_host.oauth.config import (
    FIGMA_HOST,
    RESERVED_PARAMETERS,
    Flow,
    OAuthConfig,
    client_name,
)
from tests.support.requirement import requirement


def read(**keys: object) -> OAuthConfig:
    return OAuthConfig.model_validate(keys)


def why(**keys: object) -> str:
    """The one thing that is said against these keys."""
    with pytest.raises(ValidationError) as refused:
        read(**keys)
    (error,) = refused.value.errors()
    return error["msg"].removeprefix("Value error, ")


def test_every_key_of_a_sign_in_is_read() -> None:
    given: dict[str, Any] = {
        "client_id": "c",
        "client_secret": "s",
        "client_metadata_url": "https://me.example/client.json",
        "cimd": False,
        "user_agent": "Me/1",
        "client_name": "Me",
        "scope": "a b",
        "redirect_host": "localhost",
        "redirect_port": 3_118,
        "redirect_uri": "https://me.example/callback",
        "token_endpoint_auth_method": "client_secret_post",
        "flow": "device",
        "authorize_params": {"access_type": "offline"},
        "timeout": 60.0,
    }

    config = read(**given)

    assert config.model_dump(mode="json") == given
    assert given.keys() == OAuthConfig.model_fields.keys()
    assert config.flow is Flow.DEVICE


def test_scopes_may_be_a_list() -> None:
    assert read(scope=["read", "write"]).scope == "read write"


@requirement("case.oa22")
def test_parameters_of_the_login_are_texts_as_a_url_has_them() -> None:
    config = read(authorize_params={"access_type": "offline", "max_age": 60, "force": True, 7: "x"})

    assert config.authorize_params == {
        "access_type": "offline",
        "max_age": "60",
        "force": "true",
        "7": "x",
    }


@pytest.mark.parametrize("name", sorted(RESERVED_PARAMETERS))
def test_what_the_safety_of_a_login_rests_on_is_not_set_by_hand(name: str) -> None:
    assert why(authorize_params={name: "x"}) == f"must not set {name}: the login sets it"


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:3118/callback",
        "http://localhost:3118/callback",
        "http://[::1]:3118/callback",
        "https://me.example/callback?tenant=1",
    ],
)
def test_a_redirect_goes_to_this_machine_or_over_https(uri: str) -> None:
    assert read(redirect_uri=uri).redirect_uri == uri


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://me.example/callback", "must be https unless its host is this machine"),
        ("http://127.me.example/callback", "must be https unless its host is this machine"),
        ("http://127.0.0.1.me.example/", "must be https unless its host is this machine"),
        ("com.example:/callback", "must begin with http:// or https:// and a host"),
        ("javascript://127.0.0.1/%0aalert(1)", "must begin with http:// or https:// and a host"),
        ("https://me.example/#callback", "must begin with http:// or https:// and a host"),
        ("https:///callback", "must begin with http:// or https:// and a host"),
        ("http://127.0.0.1:0/", "must begin with http:// or https:// and a host"),
        ("http://127.0.0.1:99999/", "is no URL"),
        ("http://[::1/", "is no URL"),
    ],
)
def test_a_redirect_that_would_carry_the_code_elsewhere_is_refused(uri: str, said: str) -> None:
    assert why(redirect_uri=uri).startswith(said)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("redirect_host", "0.0.0.0"),  # noqa: S104 - that it is refused is the point
        ("redirect_host", "192.168.1.1"),
        ("redirect_port", -1),
        ("redirect_port", 65_536),
        ("flow", "implicit"),
        ("token_endpoint_auth_method", "private_key_jwt"),
        ("timeout", 0),
        ("timeout", float("inf")),
        ("timeout", 86_401),
        ("user_agent", "a\r\nX-Injected: b"),
        ("authorize_params", ["access_type"]),
        ("client_id", "x" * 2_001),
    ],
)
def test_a_value_without_a_meaning_is_refused(key: str, value: object) -> None:
    assert why(**{key: value})


def test_a_secret_is_not_shown_by_what_shows_the_section() -> None:
    assert "geheim" not in repr(read(client_id="c", client_secret="geheim"))


@requirement("oauth.figma")
def test_our_name_is_ours_except_where_only_one_name_is_let_in() -> None:
    figma = f"https://{FIGMA_HOST}/mcp"

    assert client_name(read(), "https://mcp.example/mcp") == "Hermes Gateway"
    assert client_name(read(), figma) == "Claude Code"
    assert client_name(read(), f"https://{FIGMA_HOST}.example/mcp") == "Hermes Gateway"
    assert client_name(read(client_name="Me"), figma) == "Me"
