from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.findings import Finding, Severity
from mcp_host.config import ParsedServers, parse_mcp, parse_servers
from mcp_host.network_config import Transport
from mcp_host.oauth.config import Auth, OAuthConfig
from mcp_host.sanitize import show_name
from mcp_host.server_config import (
    AuditLevel,
    McpConfig,
    PolicyAction,
    Protocol,
    ServerConfig,
    Trust,
)
from tests.support.requirement import requirement


def parsed(entry: object) -> ParsedServers:
    return parse_servers({"it": entry})


def loaded(**entry: object) -> ServerConfig:
    return parsed({"command": "x", **entry}).servers["it"]


def lines(findings: tuple[Finding, ...]) -> list[str]:
    return [str(finding) for finding in findings]


def test_an_entry_with_a_command_has_the_documented_defaults() -> None:
    assert loaded().model_dump() == {
        "transport": Transport.STDIO,
        "command": "x",
        "args": (),
        "env": {},
        "cwd": None,
        "url": "",
        "headers": {},
        "ssl_verify": True,
        "client_cert": (),
        "client_key": None,
        "identity_header": None,
        "auth": Auth.NONE,
        "oauth": OAuthConfig().model_dump(),
        "skip_preflight": False,
        "lazy": False,
        "keepalive_interval": 180,
        "idle_timeout_seconds": 0,
        "max_lifetime_seconds": 0,
        "supports_parallel_tool_calls": False,
        "exclusive": False,
        "max_connections": None,
        "enabled": True,
        "timeout": 300,
        "connect_timeout": 60,
        "protocol": Protocol.AUTO,
        "trust": Trust.FULL,
        "tools": {
            "include": None,
            "exclude": (),
            "resources": None,
            "prompts": None,
            "policy": (),
        },
        "elicitation": {"enabled": True, "timeout": 300, "url": "decline"},
        "sampling": {
            "enabled": True,
            "model": "",
            "max_tokens_cap": 4096,
            "timeout": 30,
            "max_rpm": 10,
            "max_tool_rounds": 5,
            "allowed_models": (),
            "log_level": AuditLevel.INFO,
        },
    }


def test_every_key_of_an_entry_is_read() -> None:
    found = parsed(
        {
            "command": "npx",
            "args": ["-y", "server", 8080],
            "env": {"TOKEN": "abc", "PORT": 80, "DEBUG": True},
            "cwd": "/srv",
            "enabled": False,
            "timeout": "12.5",
            "connect_timeout": 5,
            "protocol": "stateless",
            "trust": "untrusted",
            "tools": {
                "include": "list_*",
                "exclude": ["a", "b"],
                "policy": {"z*": "deny", "a*": "ask", "*": "allow"},
            },
            "elicitation": {"enabled": "off", "timeout": 30, "url": "ask"},
            "sampling": {"model": "openai/m", "allowed_models": "openai:m", "max_rpm": "3"},
        }
    )

    assert found.findings == ()
    assert found.servers["it"].model_dump() == {
        **loaded().model_dump(),
        "command": "npx",
        "args": ("-y", "server", "8080"),
        "env": {"TOKEN": "abc", "PORT": "80", "DEBUG": "true"},
        "cwd": "/srv",
        "enabled": False,
        "timeout": 12.5,
        "connect_timeout": 5,
        "protocol": Protocol.STATELESS,
        "trust": Trust.UNTRUSTED,
        "tools": {
            "include": ("list_*",),
            "exclude": ("a", "b"),
            "resources": None,
            "prompts": None,
            "policy": (
                ("z*", PolicyAction.DENY),
                ("a*", PolicyAction.ASK),
                ("*", PolicyAction.ALLOW),
            ),
        },
        "elicitation": {"enabled": False, "timeout": 30, "url": "ask"},
        "sampling": {
            "enabled": True,
            "model": "openai/m",
            "max_tokens_cap": 4096,
            "timeout": 30,
            "max_rpm": 3,
            "max_tool_rounds": 5,
            "allowed_models": ("openai:m",),
            "log_level": AuditLevel.INFO,
        },
    }


def test_a_changed_order_of_the_policy_is_a_changed_entry() -> None:
    one = loaded(tools={"policy": {"a*": "ask", "*": "deny"}})
    other = loaded(tools={"policy": {"*": "deny", "a*": "ask"}})

    assert one != other


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("true", "yes", "on", "True", "YES")),
        *((word, False) for word in ("false", "no", "off", "False", "OFF")),
    ],
)
def test_a_boolean_also_comes_as_a_word(text: str, value: bool) -> None:
    assert loaded(enabled=text).enabled is value


def test_a_key_without_a_value_means_its_default() -> None:
    found = parsed({"command": "x", "args": None, "timeout": None, "tools": {"include": None}})

    assert found.findings == ()
    assert found.servers["it"] == loaded()


@requirement("case.cf4")
def test_malformed_entries_cost_one_line_each_and_the_good_one_loads() -> None:
    found = parse_servers({"bad": None, "worse": [1], "ok": {"command": "x"}, "none": {"args": []}})

    assert list(found.servers) == ["ok"]
    assert found.broken == ("bad", "worse", "none")
    assert lines(found.findings) == [
        "error: mcp_servers.bad: has no settings; the server is skipped",
        "error: mcp_servers.worse: is not a mapping of settings; the server is skipped",
        "error: mcp_servers.none: has no command and no url; the server is skipped",
    ]


@requirement("design.mcp.args_string")
@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            {"args": "-y pkg"},
            'args: must be a list, one item per argument, like ["-y", "package"]; '
            "the server is skipped",
        ),
        ({"command": " "}, "command: is empty; the server is skipped"),
        ({"timeout": 0}, "timeout: should be greater than 0; the server is skipped"),
        ({"timeout": "nan"}, "timeout: should be a finite number; the server is skipped"),
        (
            {"protocol": "fast"},
            "protocol: should be 'auto', 'stateless' or 'legacy'; the server is skipped",
        ),
        ({"tools": []}, "tools: must be a mapping; the server is skipped"),
        (
            {"sampling": {"max_rpm": 0}},
            "sampling.max_rpm: should be greater than or equal to 1; the server is skipped",
        ),
        ({"sampling": "on"}, "sampling: must be a mapping; the server is skipped"),
        ({"elicitation": False}, "elicitation: must be a mapping; the server is skipped"),
        (
            {"tools": {"policy": {"x": "maybe"}}},
            'tools.policy: must say allow, ask or deny for "x"; the server is skipped',
        ),
        (
            {"tools": {"policy": ["x"]}},
            "tools.policy: must map patterns to allow, ask or deny; the server is skipped",
        ),
        (
            {"tools": {"include": [1]}},
            "tools.include.0: should be a valid string; the server is skipped",
        ),
        ({"env": {"A=B": "1"}}, "env.A=B: is no name for a variable; the server is skipped"),
        ({"env": {"A": "x\0y"}}, "env.A: must not contain NUL; the server is skipped"),
        (
            {"args": "x", "timeout": -1, "enabled": "perhaps"},
            'args: must be a list, one item per argument, like ["-y", "package"] (and 2 more); '
            "the server is skipped",
        ),
    ],
)
def test_a_value_that_cannot_be_used_skips_the_server_with_one_line(
    entry: dict[str, object], line: str
) -> None:
    found = parsed({"command": "x", **entry})

    assert found.servers == {}
    assert lines(found.findings) == [f"error: mcp_servers.it.{line}"]


def test_a_sign_in_has_the_documented_defaults() -> None:
    found = parsed({"url": "https://x", "auth": "oauth", "oauth": {"client_id": None}})

    assert found.findings == ()
    assert found.servers["it"].auth is Auth.OAUTH
    assert found.servers["it"].oauth == OAuthConfig()


def test_a_wish_for_a_sign_in_that_nobody_asked_for_is_told() -> None:
    found = parsed({"url": "https://x", "oauth": {"scope": "x"}})

    assert "it" in found.servers
    assert lines(found.findings) == [
        "warning: mcp_servers.it.oauth: has no effect without auth: oauth"
    ]


@pytest.mark.parametrize(
    ("oauth", "line"),
    [
        (
            {"redirect_url": "http://localhost:1/"},
            "warning: mcp_servers.it.oauth.redirect_url: is not a known key; "
            "did you mean redirect_uri?",
        ),
        (
            {"client_metadata_url": "https://me.example"},
            "error: mcp_servers.it.oauth.client_metadata_url: must have a path behind its host; "
            "the server is skipped",
        ),
        ([1], "error: mcp_servers.it.oauth: must be a mapping; the server is skipped"),
    ],
)
def test_a_mistake_in_a_sign_in_is_one_line(oauth: object, line: str) -> None:
    found = parsed({"url": "https://x", "auth": "oauth", "oauth": oauth})

    assert lines(found.findings) == [line]


def test_a_later_key_that_asks_for_nothing_new_is_not_mentioned() -> None:
    found = parsed(
        {
            "command": "x",
            "type": "stdio",
            "lazy": False,
            "tools": {"resources": False, "prompts": False},
            "elicitation": {"url": False},
        }
    )

    assert found.findings == ()


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"tiemout": 3}, "tiemout: is not a known key; did you mean timeout?"),
        ({"trsut": "full"}, "trsut: is not a known key; did you mean trust?"),
        ({"tools": {"inclde": 1}}, "tools.inclde: is not a known key; did you mean include?"),
        ({"elicitation": {"time": 1}}, "elicitation.time: is not a known key; did you mean"),
        ({"zzzz": 1}, "zzzz: is not a known key"),
        ({5: 1}, "5: is not a known key"),
    ],
)
def test_an_unknown_key_warns_with_the_nearest_name(entry: dict[Any, Any], line: str) -> None:
    found = parsed({"command": "x", **entry})

    assert "it" in found.servers
    assert lines(found.findings)[0].startswith(f"warning: mcp_servers.it.{line}")


@pytest.mark.parametrize("trust", ["Untrustd", "FULL", "", None, True, 1, ["full"]])
def test_an_unknown_trust_is_untrusted(trust: object) -> None:
    found = parsed({"command": "x", "trust": trust})

    assert found.servers["it"].trust is Trust.UNTRUSTED
    assert lines(found.findings) == [
        "warning: mcp_servers.it.trust: is neither full nor untrusted: taken as untrusted"
    ]


def test_an_empty_include_is_said_aloud() -> None:
    found = parsed({"command": "x", "tools": {"include": []}})

    assert found.servers["it"].tools.include == ()
    assert lines(found.findings) == [
        "warning: mcp_servers.it.tools.include: is empty: no tool is registered"
    ]


@requirement("threat.s20")
@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        ".hidden",
        "a/b",
        "../x",
        "a\0b",
        "CON",
        "nul.txt",
        "x" * 65,
        "",
        "ü",
        "a b",
        "a\n",
    ],
)
def test_a_name_that_could_escape_or_collide_is_no_server(name: str) -> None:
    found = parse_servers({name: {"command": "x"}, "ok": {"command": "x"}})

    assert list(found.servers) == ["ok"]
    assert len(found.findings) == 1
    assert "is no name for a server" in found.findings[0].message
    assert show_name(str(found.findings[0]), limit=200) == str(found.findings[0])


@requirement("threat.s20")
def test_of_names_that_a_disk_may_take_for_one_the_first_is_the_server() -> None:
    found = parse_servers({name: {"command": "x"} for name in ("Linear", "linear", "LINEAR", "ok")})

    assert list(found.servers) == ["Linear", "ok"]
    assert lines(found.findings) == [
        "error: mcp_servers.linear: differs from Linear in capitals alone; skipped",
        "error: mcp_servers.LINEAR: differs from Linear in capitals alone; skipped",
    ]


@requirement("threat.s19")
def test_no_finding_shows_a_value() -> None:
    secret = "canary-4711"
    found = parse_servers(
        {
            "a": {"command": "x", "env": {"T": [secret]}},
            "b": {"command": "x", "args": secret},
            "c": {"command": "x", "trust": secret, "timeout": secret},
            "d": {"command": "x", "protocol": secret},
            "e": secret,
            "f": {"command": "x", "tools": {"policy": {"x": secret}}},
            "g": {"command": f"{secret}\0", "cwd": [secret]},
            "h": {"command": "x", "unknown": secret, "headers": secret},
            "i": {"url": f"ftp://{secret}", "headers": {"a": secret}},
            "j": {"url": "https://x", "headers": {"a": [secret]}},
            "k": {"url": "https://x", "headers": {"a": f"{secret}\n1"}},
            "l": {"url": "https://x", "client_cert": [[secret]], "ssl_verify": [secret]},
            "m": {"url": "https://x", "identity_header": {"name": secret, "value": f"{secret}\n1"}},
            "n": {"url": "https://x", "identity_header": {"name": "a b", "value": secret}},
        }
    )

    assert len(found.findings) == 15
    assert secret not in " ".join(lines(found.findings))


@pytest.mark.parametrize("raw", [[], "x", 5])
def test_servers_that_are_no_mapping_are_one_error(raw: object) -> None:
    found = parse_servers(raw)

    assert found.servers == {}
    assert [finding.severity for finding in found.findings] == [Severity.ERROR]


def test_no_servers_are_no_finding() -> None:
    assert parse_servers(None) == ParsedServers(servers={})
    assert parse_servers({}) == ParsedServers(servers={})


def test_the_mcp_section_has_defaults() -> None:
    assert parse_mcp(None) == (McpConfig(), ())
    assert McpConfig().model_dump() == {
        "discovery_concurrency": 4,
        "probe_interval": 300,
        "first_turn_wait": 5,
        "watch": True,
        "client_metadata_url": "",
    }


def test_the_mcp_section_keeps_what_is_right_in_it() -> None:
    config, findings = parse_mcp(
        {
            "discovery_concurrency": 0,
            "probe_interval": -1,
            "watch": "no",
            "client_metadata_url": "https://x",
            "first_turn_wiat": 3,
        }
    )

    assert config == McpConfig(discovery_concurrency=0, watch=False)
    assert lines(findings) == [
        "warning: mcp.first_turn_wiat: is not a known key; did you mean first_turn_wait?",
        "error: mcp.probe_interval: should be greater than 0; its default holds",
        "error: mcp.client_metadata_url: must have a path behind its host; its default holds",
    ]


def test_an_mcp_section_that_is_no_mapping_is_one_error() -> None:
    config, findings = parse_mcp([1])

    assert config == McpConfig()
    assert lines(findings) == ["error: mcp: must be a mapping; its defaults hold"]


_scalar = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_yaml = st.recursive(
    _scalar,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*ServerConfig.model_fields, "include", "policy", "url", 5, "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=150)
@given(raw=st.dictionaries(st.text(max_size=5) | st.integers(), _yaml, max_size=3), mcp=_yaml)
def test_whatever_the_file_says_reading_it_never_fails(raw: Any, mcp: object) -> None:
    found = parse_servers({**raw, "ok": {"command": "x"}})

    assert "ok" in found.servers
    shown = [str(finding) for finding in found.findings]
    assert shown == [show_name(line, limit=1_000) for line in shown]
    parse_mcp(mcp)


def test_a_header_that_a_sign_in_replaces_is_told() -> None:
    headers = {"authorization": "Bearer x", "X-Mine": "y"}
    read = parsed({"url": "https://x.example/mcp", "auth": "oauth", "headers": headers})

    assert lines(read.findings) == [
        "warning: mcp_servers.it.headers.authorization: gives way to the sign-in of auth: oauth"
    ]
