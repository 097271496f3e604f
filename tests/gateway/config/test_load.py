from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.load import Loaded, Reloader, check, load
from gateway.domain.errors import ConfigError
from gateway.domain.question import ApproverPolicy
from mcp_host.server_config import Trust
from tests.support.requirement import requirement

GOOD = """\
access:
  tools:
    - match: {role: user}
      deny: ["mcp__bank__*"]
gateway: {max_rounds: 7}
mcp_servers:
  notes: {command: notes, trust: untrusted}
  other: {command: other}
"""


def write(home: Home, text: str, *, env: str = "") -> None:
    home.config_file.write_text(text)
    home.env_file.write_text(env)


def loaded(home: Home, text: str, *, env: str = "", environ: Mapping[str, str] = {}) -> Loaded:
    write(home, text, env=env)
    return load(home, environ={"HOME": "/u", **environ})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_home_without_a_file_has_the_defaults(home: Home) -> None:
    found = load(home, environ={})
    assert found.config.model is None
    assert found.config.gateway.max_rounds == 20
    assert found.config.mcp_servers == {}
    assert found.findings.items == ()


@requirement("config.unknown_key.warns")
@pytest.mark.parametrize(
    ("text", "path", "meant"),
    [
        ("gatewey: {}", "gatewey", "gateway"),
        ("gateway: {max_round: 1}", "gateway.max_round", "gateway.max_rounds"),
        (
            "tools: {tool_search: {enable: true}}",
            "tools.tool_search.enable",
            "tools.tool_search.enabled",
        ),
        (
            "access: {tools: [{match: {rol: user}}]}",
            "access.tools[0].match.rol",
            "access.tools[0].match.role",
        ),
        ("platforms: {telegram: {tokn: x}}", "platforms.telegram.tokn", "platforms.telegram.token"),
        (
            "platforms: {slack: {accounts: {a: {bottoken: x}}}}",
            "platforms.slack.accounts.a.bottoken",
            "platforms.slack.accounts.a.bot_token",
        ),
        ("model: {provider: openai, nam: x, name: y}", "model.nam", "model.name"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(
    home: Home, text: str, path: str, meant: str
) -> None:
    warnings = {item.path: item.message for item in loaded(home, text).findings.warnings}
    assert f"did you mean {meant}?" in warnings[path]


@requirement("config.unknown_key.warns")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("mcp: {wach: true}", "mcp.wach"),
        ("mcp_servers: {s: {command: x, comand: y}}", "mcp_servers.s.comand"),
    ],
)
def test_unknown_keys_of_servers_are_named_too(home: Home, text: str, path: str) -> None:
    assert path in {item.path for item in loaded(home, text).findings.warnings}


@requirement("config.unknown_key.never_crashes")
def test_unknown_keys_everywhere_stop_nothing(home: Home) -> None:
    sections = (
        "model",
        "gateway",
        "platforms",
        "access",
        "approvals",
        "tools",
        "mcp",
        "mcp_servers",
        "mcp_serve",
        "store",
        "web",
        "logging",
    )
    text = "zzz: [1, {a: b}]\n1: x\n" + "".join(
        f"{name}: {{qqq: {{deep: [1]}}}}\n" for name in sections if name not in {"model", "gateway"}
    )
    text += "gateway: {qqq: 1, max_rounds: 9}\nmodel: {provider: openai, name: m, qqq: 1}\n"
    found = loaded(home, text)
    assert found.config.gateway.max_rounds == 9
    assert found.config.model is not None
    assert (
        len([item for item in found.findings.items if "qqq" in item.path or "zzz" in item.path])
        >= 12
    )


def test_sections_of_later_versions_are_known_and_said_once(home: Home) -> None:
    found = loaded(home, "web: {listen: 'x', metrics: true}\n")
    assert [item.path for item in found.findings.items] == ["web"]
    assert all("not supported by this version" in item.message for item in found.findings.items)


@requirement("config.mcp_servers_yaml.reported")
def test_a_file_of_servers_beside_the_configuration_is_reported(home: Home) -> None:
    (home.path / "mcp_servers.yaml").write_text("notes: {command: x}\n")
    found = load(home, environ={})
    (finding,) = found.findings.warnings
    assert found.config.mcp_servers == {}
    assert finding.path.endswith("mcp_servers.yaml")
    assert "move its servers below mcp_servers: in" in finding.message


@requirement("case.cf2")
def test_an_unset_variable_of_a_server_stays_literal_with_a_warning(home: Home) -> None:
    text = "mcp_servers: {wiki: {command: x, env: {WIKI_URL: '${WIKI_URL}'}}}"
    found = loaded(home, text)
    assert found.config.mcp_servers["wiki"].env == {"WIKI_URL": "${WIKI_URL}"}
    (finding,) = found.findings.warnings
    assert all(word in finding.message for word in ("WIKI_URL", "server wiki", "env.WIKI_URL"))
    assert found.unset[0].variable == "WIKI_URL"


@requirement("case.cf4")
def test_malformed_servers_cost_one_line_each_and_the_good_one_loads(home: Home) -> None:
    found = loaded(home, "mcp_servers: {bad: null, worse: [1], ok: {command: x}}")
    assert list(found.config.mcp_servers) == ["ok"]
    assert [item.path for item in found.findings.errors] == ["mcp_servers.bad", "mcp_servers.worse"]


@requirement("config.syntax_error.at_start", "case.cf4")
def test_a_syntax_error_at_start_names_file_line_and_column(home: Home) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml:2:1: YAML syntax error"):
        loaded(home, "gateway:\n\tmax_rounds: 1\n")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("gateway: {max_rounds: many}", "gateway.max_rounds"),
        ("gateway: {max_rounds: 0}", "gateway.max_rounds"),
        ("gateway: {turn_timeout: .nan}", "gateway.turn_timeout"),
        ("gateway: {busy_mode: wild}", "gateway.busy_mode"),
        ("gateway: [1]", "gateway"),
        ("approvals: {approvers: nobody}", "approvals.approvers"),
        ("approvals: {approvers: []}", "approvals.approvers"),
        ("approvals: {timeout: 0}", "approvals.timeout"),
        ("approvals: {quorum: 0}", "approvals.quorum"),
        ("access: {admins: [111]}", "access.admins"),
        ("access: {rate: {user_per_minute: -1}}", "access.rate.user_per_minute"),
        ("access: {roles: {guest: 1}}", "access.roles.guest"),
        ("access: {tools: [{match: {role: king}}]}", "access.tools[0].match.role"),
        ("tools: {tool_search: {threshold_pct: 200}}", "tools.tool_search.threshold_pct"),
        ("logging: {level: loud}", "logging.level"),
        ("model: {provider: openai}", "model"),
        ("model: nonsense:x", "model"),
        ("store: {url: 'postgresql://h/db'}", "store.url"),
        ("store: {url: 'x\\ny'}", "store.url"),
    ],
)
def test_a_value_that_cannot_be_used_stops_a_start_and_names_its_path(
    home: Home, text: str, path: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(home, text)
    assert caught.value.path.startswith(path)
    assert caught.value.path in {item.path for item in check(home, environ={}).errors}


def test_several_problems_are_counted_and_all_listed_by_a_check(home: Home) -> None:
    write(home, "gateway: {max_rounds: x, turn_timeout: y}\napprovals: {timeout: z}\n")
    with pytest.raises(ConfigError, match="and 2 more; see hermes config check"):
        load(home, environ={})
    assert [item.path for item in check(home, environ={}).errors] == [
        "gateway.max_rounds",
        "gateway.turn_timeout",
        "approvals.timeout",
    ]


@requirement("threat.s19")
def test_errors_show_no_value(home: Home) -> None:
    write(
        home,
        "model: {provider: openai, name: m, base_url: 'ftp://u:${PW}@h', max_tokens: '${PW}'}\n"
        "store: {retention_days: '${PW}'}\n"
        "mcp_servers: {s: {command: x, timeout: '${PW}', cwd: {a: '${PW}'}}}\n",
        env="PW=canary-7f3a\n",
    )
    findings = check(home, environ={})
    assert len(findings.errors) >= 3
    assert "canary" not in str([str(item) for item in findings.items])
    with pytest.raises(ConfigError) as caught:
        load(home, environ={})
    assert "canary" not in str(caught.value)


@requirement("config.booleans.strings")
@pytest.mark.parametrize("word", ["true", "yes", "on", "True", "YES"])
def test_truth_values_come_as_words_also_from_the_environment(home: Home, word: str) -> None:
    text = (
        f"gateway: {{group_sessions_per_user: '{word}'}}\n"
        f"tools: {{tool_search: {{enabled: '{word}'}}}}\n"
        f"mcp: {{watch: '{word}'}}\n"
        "mcp_servers: {s: {command: x, enabled: '${ON}', elicitation: {enabled: '${OFF}'}}}\n"
    )
    off = {"true": "false", "yes": "no", "on": "off", "True": "False", "YES": "NO"}[word]
    config = loaded(home, text, env=f"ON={word}\nOFF={off}\n").config
    assert config.gateway.group_sessions_per_user is True
    assert config.tools.tool_search.enabled is True
    assert config.mcp.watch is True
    assert config.mcp_servers["s"].enabled is True
    assert config.mcp_servers["s"].elicitation.enabled is False


@requirement("config.interpolation.lookup")
def test_model_servers_and_store_resolve_and_other_sections_do_not(home: Home) -> None:
    text = (
        "model: {provider: openai, name: '${NAME}', base_url: '${URL}'}\n"
        "gateway: {system_prompt: '${NAME}'}\n"
        "platforms: {telegram: {token: '${NAME}'}}\n"
        "mcp_servers: {s: {command: '${NAME}', args: ['${env:NAME}']}}\n"
        "store: {url: '${EMPTY}'}\n"
    )
    found = loaded(
        home, text, env="NAME=from-file\nEMPTY=\n", environ={"NAME": "x", "URL": "http://h/v1"}
    )
    assert found.config.model is not None
    assert found.config.model.name == "from-file"
    assert found.config.model.base_url == "http://h/v1"
    assert found.config.gateway.system_prompt == "${NAME}"
    assert found.config.platforms == {"telegram": {"token": "from-file"}}
    assert found.config.mcp_servers["s"].command == "from-file"
    assert found.config.store.url == ""


@requirement("config.interpolation.workspace_folder")
def test_the_workspace_is_the_configured_one_made_absolute_or_that_of_the_chat(home: Home) -> None:
    text = (
        "gateway: {workspace: '%s'}\nmcp_servers: {fs: {command: x, args: ['${workspaceFolder}']}}"
    )
    write(home, text % "sub/..//dir")
    found = load(home, environ={})
    assert found.config.workspace == Path.cwd() / "dir"
    assert found.config.mcp_servers["fs"].args == (str(Path.cwd() / "dir"),)
    write(home, text % "~/dir")
    assert load(home, environ={"HOME": "/u"}).config.workspace == Path("/u/dir")
    chat = load(home, environ={"HOME": "/u"}, workspace=Path("/chat"))
    assert chat.config.mcp_servers["fs"].args == ("/chat",)


@requirement("config.interpolation.workspace_folder")
def test_the_workspace_does_not_move_while_the_gateway_runs(home: Home) -> None:
    first = loaded(home, "gateway: {workspace: /one}")
    write(home, "gateway: {workspace: /two}\nmcp_servers: {fs: {command: '${workspaceFolder}'}}")
    again = Reloader(home, environ={}, loaded=first).reload()
    assert again.config.mcp_servers["fs"].command == "/one"


@requirement("config.interpolation.control_characters")
def test_a_server_with_a_line_feed_in_a_url_is_left_out_and_the_rest_loads(home: Home) -> None:
    text = (
        "mcp_servers:\n"
        "  bad: {url: '${URL}', headers: {A: b}}\n"
        "  good: {command: x, args: ['${URL}']}\n"
    )
    found = loaded(home, text, env='URL="http://h/\\r\\nX: y"\n')
    assert list(found.config.mcp_servers) == ["good"]
    (finding,) = found.findings.errors
    assert finding.path == "mcp_servers.bad.url"


@requirement("config.interpolation.control_characters")
def test_a_model_address_with_a_line_feed_stops_a_start(home: Home) -> None:
    with pytest.raises(ConfigError, match=r"model\.base_url: holds a line feed"):
        loaded(home, 'model: {provider: openai, name: m, base_url: "http://h\\n"}')


def test_a_missing_key_comes_from_the_environment_and_a_placeholder_counts_as_missing(
    home: Home,
) -> None:
    found = loaded(
        home,
        "model: {provider: openai, name: m, api_key: '${NOT_SET}'}",
        environ={"OPENAI_API_KEY": "sk-from-environment"},
    )
    assert found.config.model is not None
    assert found.config.model.api_key is not None
    assert found.config.model.api_key.get_secret_value() == "sk-from-environment"
    assert "sk-from-environment" in found.secrets


def test_people_without_a_platform_are_warned_about(home: Home) -> None:
    found = loaded(home, "access: {admins: ['111', 'telegram:1']}\napprovals: {approvers: ['bob']}")
    assert [item.path for item in found.findings.warnings] == [
        "approvals.approvers",
        "access.admins",
    ]
    assert found.config.approvals.approvers.policy is ApproverPolicy.LIST


@requirement("threat.s19")
def test_every_slot_that_holds_a_secret_is_known_to_the_log(home: Home) -> None:
    found = loaded(
        home,
        "model: {provider: openai, name: m, api_key: canary-key-1}\n"
        "platforms: {slack: {bot_token: canary-key-2}, telegram: {token: '${T}'}}\n"
        "mcp_servers:\n"
        "  a: {command: x, env: {GITHUB_TOKEN: canary-key-3, B: '${FROM_FILE}', MODE: plain}}\n"
        "  b:\n    url: 'https://user:canary-key-4@h/'\n"
        "    headers: {Authorization: Bearer canary-key-5, X: '${PW}'}\n",
        env="FROM_FILE=canary-key-6\nUNUSED=canary-key-7\n",
        environ={"T": "canary-key-8", "PW": "canary-key-9", "PATH": "/usr/bin:/bin"},
    )
    assert {f"canary-key-{number}" for number in range(1, 10)} <= found.secrets
    assert "plain" not in found.secrets
    assert not [secret for secret in found.secrets if "bin" in secret]
    assert "canary" not in repr(found)


@requirement("config.syntax_error.while_running")
@pytest.mark.parametrize(
    "broken",
    [
        "access: [\n",
        "gateway: {max_rounds: x}\n",
        "access: 5\n",
        "- 1\n",
        "",
        "# nothing left\n",
        "\x00",
    ],
)
def test_a_file_that_breaks_while_running_keeps_the_last_good_one(home: Home, broken: str) -> None:
    reloader = Reloader(home, environ={}, loaded=loaded(home, GOOD))
    write(home, broken)
    found = reloader.reload()
    assert found.stale
    assert found.findings.errors
    assert found.config.access.tools[0].deny == ("mcp__bank__*",)
    assert found.config.gateway.max_rounds == 7
    assert list(found.config.mcp_servers) == ["notes", "other"]
    write(home, GOOD.replace("7", "8"))
    again = reloader.reload()
    assert not again.stale
    assert again.config.gateway.max_rounds == 8


@requirement("config.syntax_error.while_running")
def test_a_file_that_disappears_while_running_removes_nothing(home: Home) -> None:
    reloader = Reloader(home, environ={}, loaded=loaded(home, GOOD))
    home.config_file.unlink()
    assert list(reloader.reload().config.mcp_servers) == ["notes", "other"]
    assert "gone or empty" in reloader.current.findings.errors[0].message


def test_an_entry_that_breaks_keeps_its_last_good_form_and_one_that_is_removed_goes(
    home: Home,
) -> None:
    reloader = Reloader(home, environ={}, loaded=loaded(home, GOOD))
    write(home, "mcp_servers: {notes: {command: [1]}, new: {command: n}}")
    found = reloader.reload()
    assert sorted(found.config.mcp_servers) == ["new", "notes"]
    assert found.config.mcp_servers["notes"].trust is Trust.UNTRUSTED
    assert found.findings.errors[0].path.startswith("mcp_servers.notes")
    write(home, "mcp_servers: [1]")
    assert sorted(reloader.reload().config.mcp_servers) == ["new", "notes"]
    write(home, "mcp_servers: {new: {command: n2}}")
    last = reloader.reload().config.mcp_servers
    assert {name: server.command for name, server in last.items()} == {"new": "n2"}


def test_a_changed_env_file_is_read_again(home: Home) -> None:
    first = loaded(home, "mcp_servers: {s: {command: '${C}'}}", env="C=one\n")
    reloader = Reloader(home, environ={}, loaded=first)
    home.env_file.write_text("C=two\n")
    assert reloader.reload().config.mcp_servers["s"].command == "two"


@requirement("platform.failure.never_stops_others")
def test_a_platform_that_cannot_be_used_is_named_and_stops_nothing(home: Home) -> None:
    found = loaded(
        home,
        "platforms: {telegram: {token: canary, mode: webhook, base_url: 'ftp://x'}}\n"
        "gateway: {max_rounds: 9}\n",
    )
    paths = {item.path for item in found.findings.errors}
    assert paths == {"platforms.telegram.base_url", "platforms.telegram.webhook.secret"}
    assert found.config.gateway.max_rounds == 9
    assert "canary" not in "".join(str(item) for item in found.findings.items)
