"""Which transport an entry means, and what becomes of the keys of the other one."""

from typing import Any

import pytest

from mcp_host.config import ParsedServers, parse_servers
from mcp_host.network_config import Transport
from mcp_host.server_config import ServerConfig
from tests.support.requirement import requirement

URL = "https://example.com/mcp"


def parsed(**entry: object) -> ParsedServers:
    return parse_servers({"it": entry}, profile="work")


def loaded(**entry: object) -> ServerConfig:
    found = parsed(**entry)
    assert found.findings == ()
    return found.servers["it"]


def lines(found: ParsedServers) -> list[str]:
    return [str(finding).replace("mcp_servers.it.", "") for finding in found.findings]


@requirement("mcp.keys.transport_choice")
@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "x"}, Transport.STDIO),
        ({"url": URL}, Transport.HTTP),
        ({"url": URL, "transport": "sse"}, Transport.SSE),
        ({"url": URL, "type": "sse"}, Transport.SSE),
        ({"url": URL, "type": "http"}, Transport.HTTP),
        ({"url": URL, "type": "streamable-http"}, Transport.HTTP),
        ({"url": URL, "type": "streamableHttp"}, Transport.HTTP),
        ({"command": "x", "type": "STDIO"}, Transport.STDIO),
    ],
)
def test_the_type_or_else_the_address_selects_the_transport(
    entry: dict[str, Any], transport: Transport
) -> None:
    assert loaded(**entry).transport is transport


@requirement("mcp.keys.transport_choice")
def test_with_both_the_url_wins_and_that_is_said() -> None:
    found = parsed(command="x", args=["a"], url=URL)

    assert (found.servers["it"].transport, found.servers["it"].command) == (Transport.HTTP, "")
    assert lines(found) == [
        "warning: command: is ignored: url is used in its place",
        "warning: args: is ignored: belongs to a server with a command",
    ]


def test_with_both_a_type_decides() -> None:
    found = parsed(command="x", url=URL, type="stdio")

    assert found.servers["it"].command == "x"
    assert lines(found) == ["warning: url: is ignored: command is used in its place"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": URL, "type": "stdio"}, "has no command"),
        ({"command": "x", "type": "http"}, "has no url"),
        ({"command": "x", "transport": "sse"}, "has no url"),
        ({"args": []}, "has no command and no url"),
    ],
)
def test_a_type_without_its_address_skips_the_server(entry: dict[str, Any], said: str) -> None:
    found = parsed(**entry)

    assert (dict(found.servers), found.broken) == ({}, ("it",))
    assert str(found.findings[0]) == f"error: mcp_servers.it: {said}; the server is skipped"


def test_an_unknown_type_warns_and_the_address_decides() -> None:
    found = parsed(url=URL, type="ssse", transport="pigeon")

    assert found.servers["it"].transport is Transport.HTTP
    assert lines(found) == [
        "warning: transport: is none of stdio, http and sse: url or command decides",
        "warning: type: is none of stdio, http and sse; did you mean sse?: url or command decides",
    ]


def test_a_transport_wins_over_another_type() -> None:
    found = parsed(url=URL, transport="sse", type="http")

    assert found.servers["it"].transport is Transport.SSE
    assert lines(found) == ["warning: type: is ignored: transport says another one"]


STDIO = {
    "args": ["a"],
    "env": {"A": "b"},
    "cwd": "/",
    "idle_timeout_seconds": 5,
    "max_lifetime_seconds": 5,
    "lifecycle": {"idle_timeout_seconds": 5},
}
NETWORK = {
    "headers": {"a": "b"},
    "ssl_verify": False,
    "client_cert": "c.pem",
    "client_key": "c.key",
    "identity_header": {"name": "x", "value": "y"},
    "auth": "oauth",
    "oauth": {"client_id": "x"},
    "skip_preflight": True,
}


@requirement("mcp.keys.foreign_transport")
@pytest.mark.parametrize("key", sorted(STDIO))
def test_a_key_of_stdio_is_ignored_with_a_warning_on_a_server_with_a_url(key: str) -> None:
    found = parsed(url=URL, **{key: STDIO[key]})

    assert found.servers["it"] == loaded(url=URL)
    assert lines(found) == [f"warning: {key}: is ignored: belongs to a server with a command"]


@requirement("mcp.keys.foreign_transport")
@pytest.mark.parametrize("key", sorted(NETWORK))
def test_a_key_of_the_network_is_ignored_with_a_warning_on_a_stdio_server(key: str) -> None:
    found = parsed(command="x", **{key: NETWORK[key]})

    assert found.servers["it"] == loaded(command="x")
    assert lines(found) == [f"warning: {key}: is ignored: belongs to a server with a url"]


def test_the_keys_of_a_server_with_a_url_have_the_documented_defaults() -> None:
    server = loaded(url=f" {URL} ")

    assert (server.url, server.headers, server.ssl_verify) == (URL, {}, True)
    assert (server.client_cert, server.client_key) == ((), None)
    assert (server.identity_header, server.skip_preflight) == (None, False)


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        (
            {"headers": {"A": 5, "B": True, "C": " c "}},
            "headers",
            {"A": "5", "B": "true", "C": "c"},
        ),
        ({"ssl_verify": "off"}, "ssl_verify", False),
        ({"ssl_verify": "Yes"}, "ssl_verify", True),
        ({"ssl_verify": "~/ca.pem"}, "ssl_verify", "~/ca.pem"),
        ({"client_cert": "c.pem"}, "client_cert", ("c.pem",)),
        ({"client_cert": ["c", "k"]}, "client_cert", ("c", "k")),
        ({"client_cert": ["c", "k", "pw"]}, "client_cert", ("c", "k", "pw")),
        ({"client_cert": "c", "client_key": "k"}, "client_key", "k"),
        ({"skip_preflight": "yes"}, "skip_preflight", True),
    ],
)
def test_the_documented_shapes_are_read(entry: dict[str, Any], key: str, value: object) -> None:
    assert getattr(loaded(url=URL, **entry), key) == value


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "ftp://x"}, "url: must begin with http:// or https:// and a host"),
        ({"url": "https://"}, "url: must begin with http:// or https:// and a host"),
        ({"url": "https://x:70000/"}, "url: is no URL"),
        ({"url": "https://x y/"}, "url: holds a space or a control character"),
        ({"url": 5}, "url: should be a valid string"),
        ({"url": URL, "headers": {"a b": "c"}}, "headers.a b: is no name for a header"),
        ({"url": URL, "headers": {"a": "b\nc"}}, "headers.a: holds a control character"),
        ({"url": URL, "headers": {"a": ["b"]}}, "headers.a: should be a valid string"),
        ({"url": URL, "headers": "a: b"}, "headers: should be a valid dictionary"),
        (
            {"url": URL, "client_cert": ["a", "b", "c", "d"]},
            "client_cert: must be a path, [certificate, key]",
        ),
        ({"url": URL, "client_cert": []}, "client_cert: must be a path, [certificate, key]"),
        ({"url": URL, "client_cert": ["a", 1]}, "client_cert: must be a path"),
        ({"url": URL, "client_cert": {"a": 1}}, "client_cert: must be a path"),
        ({"url": URL, "ssl_verify": 5}, "ssl_verify: is neither a truth value nor a path"),
        ({"url": URL, "ssl_verify": ""}, "ssl_verify: is neither a truth value nor a path"),
    ],
)
def test_what_cannot_be_sent_skips_the_server(entry: dict[str, Any], said: str) -> None:
    found = parsed(**entry)

    assert dict(found.servers) == {}
    assert lines(found)[0].startswith(f"error: {said}")


def test_a_key_without_a_certificate_is_ignored_with_a_warning() -> None:
    found = parsed(url=URL, client_key="k")

    assert found.servers["it"].client_key is None
    assert lines(found) == ["warning: client_key: is ignored without a client_cert"]


@requirement("case.cf1")
@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
@pytest.mark.parametrize(
    "value", ["Bearer abc", "Bearer Bearer abc", " bearer  Bearer   Bearer abc"]
)
def test_the_scheme_of_a_token_goes_out_once(name: str, value: str) -> None:
    (sent,) = loaded(url=URL, headers={name: value}).headers.values()

    assert sent == "Bearer abc"


def test_another_header_is_sent_as_it_is_written() -> None:
    assert loaded(url=URL, headers={"X-Note": "Bearer Bearer abc"}).headers == {
        "X-Note": "Bearer Bearer abc"
    }


@requirement("mcp.identity_header")
@pytest.mark.parametrize(
    ("block", "sent"),
    [
        ({"name": "X-Who", "value": "me"}, {"X-Who": "me"}),
        ({"name": "X-Who", "value_from": "static", "value": "me"}, {"X-Who": "me"}),
        ({"name": "X-Who", "value_from": "profile"}, {"X-Who": "work"}),
        ({"name": "X-Who", "value_from": "profile", "value": "me"}, {"X-Who": "work"}),
    ],
)
def test_the_identity_goes_out_as_a_header(block: dict[str, Any], sent: dict[str, str]) -> None:
    assert loaded(url=URL, identity_header=block).sent_headers == sent


@requirement("mcp.identity_header")
def test_the_home_itself_is_the_profile_named_default() -> None:
    block = {"name": "X-Who", "value_from": "profile"}
    found = parse_servers({"it": {"url": URL, "identity_header": block}})

    assert found.servers["it"].sent_headers == {"X-Who": "default"}


@requirement("mcp.identity_header")
def test_an_explicit_header_of_any_case_wins_over_the_identity() -> None:
    server = loaded(
        url=URL, headers={"x-WHO": "explicit"}, identity_header={"name": "X-Who", "value": "me"}
    )

    assert server.sent_headers == {"x-WHO": "explicit"}


@requirement("mcp.identity_header")
@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("me", "identity_header: is ignored: it must be a mapping"),
        ({"name": "X"}, "identity_header.value: Field required; identity_header is ignored"),
        ({"name": "X", "value": ""}, "identity_header.value: is empty"),
        ({"value": "me"}, "identity_header.name: Field required; identity_header is ignored"),
        ({"name": "a b", "value": "me"}, "identity_header.name: is no name for a header"),
        ({"name": "X", "value_from": "moon"}, "identity_header.value_from: should be 'static'"),
        ({"name": "X", "value": "a\nb"}, "identity_header.value: holds a control character"),
    ],
)
def test_an_invalid_identity_warns_and_is_ignored(block: Any, said: str) -> None:
    found = parsed(url=URL, identity_header=block)

    assert found.servers["it"].sent_headers == {}
    assert lines(found)[0].startswith(f"warning: {said}")


@requirement("case.ap15")
@pytest.mark.parametrize(
    "entry",
    [
        {"client_cert": "b.pem"},
        {"client_cert": ["a.pem", "b.key"]},
        {"headers": {"a": "b"}},
        {"identity_header": {"name": "X", "value": "b"}},
        {"ssl_verify": False},
        {"transport": "sse"},
    ],
)
def test_the_same_url_with_another_identity_is_another_entry(entry: dict[str, Any]) -> None:
    one = loaded(
        url=URL,
        client_cert="a.pem",
        headers={"a": "a"},
        identity_header={"name": "X", "value": "a"},
    )
    same = {
        "client_cert": "a.pem",
        "headers": {"a": "a"},
        "identity_header": {"name": "X", "value": "a"},
    }

    assert one == loaded(url=URL, **same)
    assert one != loaded(url=URL, **{**same, **entry})


def test_an_entry_whose_variable_is_not_set_is_kept_and_says_so() -> None:
    found = parse_servers({"it": {"url": "${HOST}/mcp"}}, unset={"it": ["HOST"]})

    assert found.findings == ()
    assert found.servers["it"].unset == ("HOST",)
    assert found.servers["it"] != found.servers["it"].with_unset(())
