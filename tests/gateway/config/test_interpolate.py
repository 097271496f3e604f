import os
from pathlib import Path

import pytest

from gateway.config.findings import KeyPath
from gateway.config.interpolate import Resolver, control_findings, unset_finding
from tests.support.requirement import requirement

WORKSPACE = Path("/work/project")


def resolver(
    env_file: dict[str, str] | None = None, environ: dict[str, str] | None = None
) -> Resolver:
    return Resolver(
        env_file=env_file or {}, environ={"HOME": "/u", **(environ or {})}, workspace=WORKSPACE
    )


def resolved(text: str, **variables: str) -> object:
    return resolver(variables).resolve(text, path=("mcp_servers", "s", "url")).value


@requirement("config.interpolation.lookup")
def test_variables_resolve_at_any_depth_from_the_env_file_first() -> None:
    value = {
        "env": {"A": "${TOKEN}"},
        "args": ["-x", ["${env:TOKEN}", {"deep": "<${OTHER}>"}]],
        "n": 5,
    }
    found = resolver({"TOKEN": "file"}, {"TOKEN": "process", "OTHER": "process"}).resolve(
        value, path=("mcp_servers", "s")
    )
    assert found.value == {
        "env": {"A": "file"},
        "args": ["-x", ["file", {"deep": "<process>"}]],
        "n": 5,
    }
    assert found.unset == ()


@requirement("config.interpolation.lookup")
def test_an_empty_variable_of_the_env_file_is_set() -> None:
    assert resolver({"A": ""}, {"A": "process"}).resolve("[${A}]", path=("model",)).value == "[]"


@requirement("case.cf2")
def test_an_unset_variable_stays_literal_and_is_named_with_server_and_key() -> None:
    found = resolver().resolve({"env": {"WIKI_URL": "${WIKI_URL}"}}, path=("mcp_servers", "wiki"))
    assert found.value == {"env": {"WIKI_URL": "${WIKI_URL}"}}
    (unset,) = found.unset
    finding = unset_finding(unset)
    assert finding.path == "mcp_servers.wiki.env.WIKI_URL"
    assert "variable WIKI_URL is not set (server wiki, key env.WIKI_URL)" in finding.message


def test_an_unset_variable_of_a_section_names_the_section() -> None:
    (unset,) = resolver().resolve({"url": "${DB}"}, path=("store",)).unset
    assert "variable DB is not set (section store, key url)" in unset_finding(unset).message


@requirement("config.interpolation.context_variables")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${userHome}", "/u"),
        ("${workspaceFolder}", "/work/project"),
        ("${workspaceFolderBasename}", "project"),
        ("${pathSeparator}", os.sep),
        ("${userHome}${/}.cache${/}mcp", f"/u{os.sep}.cache{os.sep}mcp"),
        ("${USERHOME}", "from the environment"),
        ("${workspacefolder}", "also"),
        ("${env:userHome}", "a variable of that name"),
    ],
)
def test_context_variables_are_case_sensitive(text: str, value: str) -> None:
    variables = {
        "USERHOME": "from the environment",
        "workspacefolder": "also",
        "userHome": "a variable of that name",
    }
    assert resolved(text, **variables) == value


@requirement("config.interpolation.default")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A:-default}", "set"),
        ("${EMPTY:-default}", ""),
        ("${MISSING:-default}", "default"),
        ("${env:MISSING:-http://h:1/x}", "http://h:1/x"),
        ("${MISSING:-}", ""),
        ("${MISSING:-${A}}", "set"),
        ("${MISSING:-${ALSO:-deep}}", "deep"),
        ("${A:-${MISSING}}", "set"),
    ],
)
def test_a_default_is_used_exactly_when_the_variable_is_not_set(text: str, value: str) -> None:
    found = resolver({"A": "set", "EMPTY": ""}).resolve(text, path=("model",))
    assert found.value == value
    assert found.unset == ()


@requirement("config.interpolation.single_pass")
def test_a_value_that_holds_a_placeholder_is_not_expanded_again() -> None:
    found = resolver({"A": "${B}", "B": "secret"}).resolve("<${A}>", path=("model",))
    assert found.value == "<${B}>"
    assert found.unset == ()


@requirement("config.interpolation.bare_dollar")
@pytest.mark.parametrize("text", ["$A", "a $A b", "$$A", "$(A)", "{A}", "$ {A}", "${A", "cost: 5$"])
def test_only_braces_make_a_placeholder(text: str) -> None:
    assert resolved(text, A="value") == text


def test_an_empty_name_is_a_variable_nobody_set() -> None:
    found = resolver().resolve("${}", path=("model",))
    assert found.value == "${}"
    assert [unset.variable for unset in found.unset] == [""]


@requirement("threat.s19")
def test_what_is_shown_holds_nothing_from_the_environment() -> None:
    found = resolver({"TOKEN": "canary"}).resolve(
        {
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "args": ["${workspaceFolder}", "${X:-d}"],
        },
        path=("mcp_servers", "s"),
    )
    assert found.shown == {
        "headers": {"Authorization": "Bearer ${TOKEN}"},
        "args": ["/work/project", "d"],
    }
    assert [lookup.value for lookup in found.lookups] == ["canary"]
    assert "canary" not in repr(found)


@requirement("config.interpolation.control_characters")
@pytest.mark.parametrize("character", ["\r", "\n", "\0"])
@pytest.mark.parametrize(
    ("value", "path", "where"),
    [
        ({"url": "http://h/{}"}, ("mcp_servers", "s"), "mcp_servers.s.url"),
        ({"headers": {"X-A": "b{}"}}, ("mcp_servers", "s"), "mcp_servers.s.headers.X-A"),
        ({"headers": {"X{}": "b"}}, ("mcp_servers", "s"), "mcp_servers.s.headers"),
        (
            {"identity_header": {"value": "b{}"}},
            ("mcp_servers", "s"),
            "mcp_servers.s.identity_header.value",
        ),
        ({"base_url": "http://h{}"}, ("model",), "model.base_url"),
        (
            {"accounts": {"a": {"gateway_url": "x{}"}}},
            ("platforms", "discord"),
            "platforms.discord.accounts.a.gateway_url",
        ),
    ],
)
def test_a_header_or_url_with_a_control_character_is_refused(
    character: str, value: dict[str, object], path: KeyPath, where: str
) -> None:
    def put(part: object) -> object:
        if isinstance(part, dict):
            return {str(key).replace("{}", character): put(item) for key, item in part.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return str(part).replace("{}", character)

    (finding,) = control_findings(put(value), path=path)
    assert finding.path == where
    assert "refused" in finding.message


def test_other_values_may_hold_line_feeds() -> None:
    value = {"args": ["a\nb"], "env": {"PEM": "a\nb"}, "url": "http://h/"}
    assert control_findings(value, path=("mcp_servers", "s")) == ()
