"""Each documented key, set in YAML, arrives where it is read; documentation and schema agree."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.account import DmPolicy, GroupConfig
from adapters.slack.config import Mode as SlackMode
from adapters.slack.config import SlackAccount, parse_slack
from adapters.telegram.config import Mode, ReplyTo, parse_telegram
from gateway.config.channels import ChannelSettings
from gateway.config.home import Home
from gateway.config.keys import ITEMS, KEYS, LATER, Tree
from gateway.config.load import check, load
from gateway.config.schema import Config
from gateway.domain.errors import ConfigError
from gateway.domain.question import ApproverPolicy
from gateway.runtime.config import BusyMode, PersonRole, Route
from mcp_host.network_config import Transport
from mcp_host.oauth.config import Auth, Flow
from mcp_host.server_config import McpConfig, PolicyAction, Protocol, ServerConfig, Trust
from mcp_host.transport_keys import NETWORK_KEYS
from tests.support.documented import documented, fields
from tests.support.requirement import requirement

SERVER = "mcp_servers.<name>"

Read = Callable[[Config], Any]


def _model(config: Config) -> Any:
    return config.model


def _rule(config: Config) -> Any:
    return config.access.tools[0]


def _server(config: Config) -> ServerConfig:
    return config.mcp_servers["s"]


def _key(config: Config) -> str:
    return _model(config).api_key.get_secret_value()


TELEGRAM = "platforms.telegram"
SLACK = "platforms.slack"


def _telegram(config: Config) -> Any:
    if not config.platforms:
        return parse_telegram({"token": "1:x"}).accounts[0]
    return parse_telegram(config.platforms["telegram"]).accounts[0]


def _accounts(config: Config) -> list[str]:
    return [each.name for each in parse_telegram(config.platforms.get("telegram")).accounts]


def _sign_in(name: str, value: str, taken: object) -> tuple[str, Read, object]:
    """One key of a server's `oauth`."""
    text = f"auth: oauth\n    oauth: {{{name}: {value}}}"
    return text, lambda config: getattr(_server(config).oauth, name), taken


DOCUMENT_URL = "https://me.example/client.json"


def _bot(name: str, value: str, taken: object) -> tuple[str, Read, object]:
    """One key of Telegram's section, read as its adapter does."""
    text = f"platforms: {{telegram: {{token: '1:x', {name}: {value}}}}}"
    return text, lambda config: getattr(_telegram(config), name), taken


def _webhook(name: str, value: str, taken: object) -> tuple[str, Read, object]:
    text = f"platforms: {{telegram: {{token: '1:x', webhook: {{{name}: '{value}'}}}}}}"
    return text, lambda config: getattr(_telegram(config).webhook, name), taken


def _slack(config: Config) -> SlackAccount:
    found = parse_slack(config.platforms.get("slack")).accounts
    return found[0] if found else SlackAccount()


def _workspace(name: str, value: str, taken: object) -> tuple[str, Read, object]:
    """One key of Slack's section, read as its adapter does."""
    text = f"platforms: {{slack: {{bot_token: x, app_token: y, {name}: {value}}}}}"
    return text, lambda config: getattr(_slack(config), name), taken


SLACK_ROWS: dict[str, tuple[str, Read, object]] = {
    f"{SLACK}.bot_token": (
        "platforms: {slack: {bot_token: x, app_token: y}}",
        lambda c: _slack(c).bot_token,
        SecretStr("x"),
    ),
    f"{SLACK}.app_token": (
        "platforms: {slack: {bot_token: x, app_token: y}}",
        lambda c: _slack(c).app_token,
        SecretStr("y"),
    ),
    f"{SLACK}.signing_secret": _workspace("signing_secret", "s", SecretStr("s")),
    f"{SLACK}.enabled": (
        "platforms: {slack: {bot_token: x, app_token: y, enabled: false}}",
        lambda c: parse_slack(c.platforms["slack"]).accounts if c.platforms else None,
        (),
    ),
    f"{SLACK}.mode": _workspace("mode", "http, signing_secret: s", SlackMode.HTTP),
    f"{SLACK}.listen": _workspace("listen", "'0.0.0.0:1'", "0.0.0.0:1"),
    f"{SLACK}.base_url": _workspace("base_url", "'http://h/api/'", "http://h/api"),
    f"{SLACK}.allow_from": _workspace("allow_from", "[U5]", frozenset({"U5"})),
    f"{SLACK}.open": _workspace("open", "true", True),
    f"{SLACK}.dm_policy": _workspace("dm_policy", "ignore", DmPolicy.IGNORE),
    f"{SLACK}.groups": _workspace("groups", "[C5]", {"C5": GroupConfig()}),
    f"{SLACK}.require_mention": _workspace("require_mention", "false", False),
    f"{SLACK}.strict_mention": _workspace("strict_mention", "true", True),
    f"{SLACK}.reply_in_thread": _workspace("reply_in_thread", "false", False),
    f"{SLACK}.allow_bots": _workspace("allow_bots", "true", True),
    f"{SLACK}.home_channel": _workspace("home_channel", "C5", "C5"),
    f"{SLACK}.streaming": _workspace("streaming", "false", False),
    f"{SLACK}.channel_overrides": (
        "platforms: {slack: {channel_overrides: {C5: {system_prompt: hi}}}}",
        lambda c: c.channels,
        {("slack", ""): {"C5": ChannelSettings(system_prompt="hi")}},
    ),
    f"{SLACK}.accounts": (
        "platforms: {slack: {app_token: y, accounts: {work: {bot_token: x}}}}",
        lambda c: [a.name for a in parse_slack(c.platforms.get("slack")).accounts],
        ["work"],
    ),
}


ROWS: dict[str, tuple[str, Read, object]] = {
    **SLACK_ROWS,
    "gateway.group_sessions_per_user": (
        "gateway: {group_sessions_per_user: false}",
        lambda c: c.gateway.group_sessions_per_user,
        False,
    ),
    f"{TELEGRAM}.token": (
        "platforms: {telegram: {token: '1:y'}}",
        lambda c: _telegram(c).token.get_secret_value(),
        "1:y",
    ),
    f"{TELEGRAM}.enabled": (
        "platforms: {telegram: {token: '1:y', enabled: false}}",
        lambda c: _accounts(c) if c.platforms else None,
        [],
    ),
    f"{TELEGRAM}.accounts": (
        "platforms: {telegram: {accounts: {work: {token: '2:y'}}}}",
        _accounts,
        ["work"],
    ),
    f"{TELEGRAM}.base_url": _bot("base_url", "'http://h'", "http://h"),
    f"{TELEGRAM}.mode": _bot("mode", "webhook, webhook: {secret: s}", Mode.WEBHOOK),
    f"{TELEGRAM}.allow_from": _bot("allow_from", "[5]", frozenset({"5"})),
    f"{TELEGRAM}.open": _bot("open", "true", True),
    f"{TELEGRAM}.dm_policy": _bot("dm_policy", "ignore", DmPolicy.IGNORE),
    f"{TELEGRAM}.groups": _bot("groups", "[-5]", {"-5": GroupConfig()}),
    f"{TELEGRAM}.require_mention": _bot("require_mention", "false", False),
    f"{TELEGRAM}.strict_mention": _bot("strict_mention", "true", True),
    f"{TELEGRAM}.allow_bots": _bot("allow_bots", "true", True),
    f"{TELEGRAM}.channel_overrides": (
        "platforms: {telegram: {channel_overrides: {-5: {system_prompt: hi}}}}",
        lambda c: c.channels,
        {("telegram", ""): {"-5": ChannelSettings(system_prompt="hi")}},
    ),
    f"{TELEGRAM}.home_channel": _bot("home_channel", "5", "5"),
    f"{TELEGRAM}.streaming": _bot("streaming", "false", False),
    f"{TELEGRAM}.reply_to": _bot("reply_to", "all", ReplyTo.ALL),
    f"{TELEGRAM}.webhook.url": _webhook("url", "https://h", "https://h"),
    f"{TELEGRAM}.webhook.listen": _webhook("listen", "0.0.0.0:1", "0.0.0.0:1"),
    f"{TELEGRAM}.webhook.secret": _webhook("secret", "s", SecretStr("s")),
    "model.provider": (
        "model: {provider: anthropic, name: m}",
        lambda c: _model(c).provider.value,
        "anthropic",
    ),
    "model.name": ("model: {provider: openai, name: big}", lambda c: _model(c).name, "big"),
    "model.base_url": (
        "model: {name: m, base_url: 'http://h/v1'}",
        lambda c: _model(c).url,
        "http://h/v1",
    ),
    "model.api_key": ("model: {provider: openai, name: m, api_key: k}", _key, "k"),
    "model.max_tokens": (
        "model: {provider: openai, name: m, max_tokens: 9}",
        lambda c: _model(c).max_tokens,
        9,
    ),
    "model.temperature": (
        "model: {provider: openai, name: m, temperature: 0.5}",
        lambda c: _model(c).temperature,
        0.5,
    ),
    "model.context_window": (
        "model: {provider: openai, name: m, context_window: 99}",
        lambda c: _model(c).context_window,
        99,
    ),
    "model.fallbacks": (
        "model: {provider: openai, name: m, fallbacks: ['anthropic:c']}",
        lambda c: _model(c).fallbacks[0].label,
        "anthropic:c",
    ),
    "gateway.busy_mode": (
        "gateway: {busy_mode: steer}",
        lambda c: c.gateway.busy_mode,
        BusyMode.STEER,
    ),
    "gateway.max_rounds": ("gateway: {max_rounds: 3}", lambda c: c.gateway.max_rounds, 3),
    "gateway.turn_timeout": ("gateway: {turn_timeout: 30}", lambda c: c.gateway.turn_timeout, 30),
    "gateway.workspace": ("gateway: {workspace: /w}", lambda c: c.workspace, Path("/w")),
    "gateway.system_prompt": (
        "gateway: {system_prompt: Hi}",
        lambda c: c.gateway.system_prompt,
        "Hi",
    ),
    "access.rate.user_per_minute": (
        "access: {rate: {user_per_minute: 3}}",
        lambda c: c.access.rate.user_per_minute,
        3,
    ),
    "access.rate.chat_per_minute": (
        "access: {rate: {chat_per_minute: 3}}",
        lambda c: c.access.rate.chat_per_minute,
        3,
    ),
    "access.rate.tokens_per_day": (
        "access: {rate: {tokens_per_day: 3}}",
        lambda c: c.access.rate.tokens_per_day,
        3,
    ),
    "access.admins": ("access: {admins: ['a:1']}", lambda c: c.access.admins, {"a:1"}),
    "access.roles.guest": (
        "access: {roles: {guest: ['a:1']}}",
        lambda c: c.access.roles[PersonRole.GUEST],
        {"a:1"},
    ),
    "access.roles.user": (
        "access: {roles: {user: ['a:1']}}",
        lambda c: c.access.roles[PersonRole.USER],
        {"a:1"},
    ),
    "access.tools[].match.role": (
        "access: {tools: [{match: {role: guest}}]}",
        lambda c: _rule(c).match.role,
        PersonRole.GUEST,
    ),
    "access.tools[].match.platform": (
        "access: {tools: [{match: {platform: slack}}]}",
        lambda c: _rule(c).match.platform,
        "slack",
    ),
    "access.tools[].match.channel": (
        "access: {tools: [{match: {channel: 'slack:C'}}]}",
        lambda c: _rule(c).match.channel,
        "slack:C",
    ),
    "access.tools[].allow": (
        "access: {tools: [{allow: ['x*']}]}",
        lambda c: _rule(c).allow,
        ("x*",),
    ),
    "access.tools[].deny": ("access: {tools: [{deny: ['x*']}]}", lambda c: _rule(c).deny, ("x*",)),
    "access.tools[].commands": (
        "access: {tools: [{commands: [help]}]}",
        lambda c: _rule(c).commands,
        ("help",),
    ),
    "approvals.timeout": ("approvals: {timeout: 9}", lambda c: c.approvals.timeout, 9),
    "approvals.approvers": (
        "approvals: {approvers: admins}",
        lambda c: c.approvals.approvers.policy,
        ApproverPolicy.ADMINS,
    ),
    "approvals.route": ("approvals: {route: home}", lambda c: c.approvals.route, Route.HOME),
    "approvals.quorum": ("approvals: {quorum: 2}", lambda c: c.approvals.quorum, 2),
    "approvals.redact": ("approvals: {redact: [iban]}", lambda c: c.approvals.redact, ("iban",)),
    "tools.tool_search.enabled": (
        "tools: {tool_search: {enabled: 'off'}}",
        lambda c: c.tools.tool_search.enabled,
        False,
    ),
    "tools.tool_search.threshold_pct": (
        "tools: {tool_search: {threshold_pct: 9}}",
        lambda c: c.tools.tool_search.threshold_pct,
        9,
    ),
    "tools.tool_search.listing_max_tokens": (
        "tools: {tool_search: {listing_max_tokens: 9}}",
        lambda c: c.tools.tool_search.listing_max_tokens,
        9,
    ),
    "mcp.discovery_concurrency": (
        "mcp: {discovery_concurrency: 9}",
        lambda c: c.mcp.discovery_concurrency,
        9,
    ),
    "mcp.probe_interval": ("mcp: {probe_interval: 9}", lambda c: c.mcp.probe_interval, 9),
    "mcp.first_turn_wait": ("mcp: {first_turn_wait: 9}", lambda c: c.mcp.first_turn_wait, 9),
    "mcp.watch": ("mcp: {watch: false}", lambda c: c.mcp.watch, False),
    "mcp.client_metadata_url": (
        f"mcp: {{client_metadata_url: '{DOCUMENT_URL}'}}",
        lambda c: c.mcp.client_metadata_url,
        DOCUMENT_URL,
    ),
    f"{SERVER}.command": ("command: y", lambda c: _server(c).command, "y"),
    f"{SERVER}.args": ("args: [a, 1]", lambda c: _server(c).args, ("a", "1")),
    f"{SERVER}.env": ("env: {A: b}", lambda c: _server(c).env, {"A": "b"}),
    f"{SERVER}.cwd": ("cwd: /w", lambda c: _server(c).cwd, "/w"),
    f"{SERVER}.transport": ("transport: sse", lambda c: _server(c).transport, Transport.SSE),
    f"{SERVER}.url": ("", lambda c: _server(c).url, "https://y"),
    f"{SERVER}.headers": ("headers: {A: b}", lambda c: _server(c).headers, {"A": "b"}),
    f"{SERVER}.ssl_verify": ("ssl_verify: ~/ca.pem", lambda c: _server(c).ssl_verify, "~/ca.pem"),
    f"{SERVER}.client_cert": (
        "client_cert: [c, k, pw]",
        lambda c: _server(c).client_cert,
        ("c", "k", "pw"),
    ),
    f"{SERVER}.client_key": (
        "client_cert: c\n    client_key: k",
        lambda c: _server(c).client_key,
        "k",
    ),
    f"{SERVER}.identity_header": (
        "identity_header: {name: X, value_from: profile}",
        lambda c: _server(c).sent_headers,
        {"X": "default"},
    ),
    f"{SERVER}.skip_preflight": (
        "skip_preflight: true",
        lambda c: _server(c).skip_preflight,
        True,
    ),
    f"{SERVER}.auth": ("auth: oauth", lambda c: _server(c).auth, Auth.OAUTH),
    f"{SERVER}.oauth.client_id": _sign_in("client_id", "me", "me"),
    f"{SERVER}.oauth.client_secret": _sign_in("client_secret", "canary", "canary"),
    f"{SERVER}.oauth.client_metadata_url": _sign_in(
        "client_metadata_url", f"'{DOCUMENT_URL}'", DOCUMENT_URL
    ),
    f"{SERVER}.oauth.cimd": _sign_in("cimd", "'no'", False),
    f"{SERVER}.oauth.user_agent": _sign_in("user_agent", "Me/1", "Me/1"),
    f"{SERVER}.oauth.client_name": _sign_in("client_name", "Me", "Me"),
    f"{SERVER}.oauth.scope": _sign_in("scope", "[a, b]", "a b"),
    f"{SERVER}.oauth.redirect_host": _sign_in("redirect_host", "localhost", "localhost"),
    f"{SERVER}.oauth.redirect_port": _sign_in("redirect_port", "3118", 3118),
    f"{SERVER}.oauth.redirect_uri": _sign_in("redirect_uri", "'https://p/cb'", "https://p/cb"),
    f"{SERVER}.oauth.token_endpoint_auth_method": _sign_in(
        "token_endpoint_auth_method", "none", "none"
    ),
    f"{SERVER}.oauth.flow": _sign_in("flow", "device", Flow.DEVICE),
    f"{SERVER}.oauth.authorize_params": _sign_in(
        "authorize_params", "{access_type: offline}", {"access_type": "offline"}
    ),
    f"{SERVER}.oauth.timeout": _sign_in("timeout", "60", 60),
    f"{SERVER}.enabled": ("enabled: 'no'", lambda c: _server(c).enabled, False),
    f"{SERVER}.timeout": ("timeout: 9", lambda c: _server(c).timeout, 9),
    f"{SERVER}.connect_timeout": ("connect_timeout: 9", lambda c: _server(c).connect_timeout, 9),
    f"{SERVER}.protocol": ("protocol: legacy", lambda c: _server(c).protocol, Protocol.LEGACY),
    f"{SERVER}.trust": ("trust: untrusted", lambda c: _server(c).trust, Trust.UNTRUSTED),
    f"{SERVER}.tools.include": ("tools: {include: a}", lambda c: _server(c).tools.include, ("a",)),
    f"{SERVER}.tools.exclude": ("tools: {exclude: a}", lambda c: _server(c).tools.exclude, ("a",)),
    f"{SERVER}.tools.policy": (
        "tools: {policy: {a: ask}}",
        lambda c: _server(c).tools.policy,
        (("a", PolicyAction.ASK),),
    ),
    f"{SERVER}.elicitation.enabled": (
        "elicitation: {enabled: 'off'}",
        lambda c: _server(c).elicitation.enabled,
        False,
    ),
    f"{SERVER}.elicitation.url": (
        "elicitation: {url: ask}",
        lambda c: _server(c).elicitation.url,
        "ask",
    ),
    f"{SERVER}.elicitation.timeout": (
        "elicitation: {timeout: 9}",
        lambda c: _server(c).elicitation.timeout,
        9,
    ),
    f"{SERVER}.sampling.enabled": (
        "sampling: {enabled: 'off'}",
        lambda c: _server(c).sampling.enabled,
        False,
    ),
    f"{SERVER}.sampling.model": (
        "sampling: {model: openai:m}",
        lambda c: _server(c).sampling.model,
        "openai:m",
    ),
    f"{SERVER}.sampling.max_tokens_cap": (
        "sampling: {max_tokens_cap: 9}",
        lambda c: _server(c).sampling.max_tokens_cap,
        9,
    ),
    f"{SERVER}.sampling.timeout": (
        "sampling: {timeout: 9}",
        lambda c: _server(c).sampling.timeout,
        9,
    ),
    f"{SERVER}.sampling.max_rpm": (
        "sampling: {max_rpm: 9}",
        lambda c: _server(c).sampling.max_rpm,
        9,
    ),
    f"{SERVER}.sampling.max_tool_rounds": (
        "sampling: {max_tool_rounds: 0}",
        lambda c: _server(c).sampling.max_tool_rounds,
        0,
    ),
    f"{SERVER}.sampling.allowed_models": (
        "sampling: {allowed_models: m}",
        lambda c: _server(c).sampling.allowed_models,
        ("m",),
    ),
    f"{SERVER}.sampling.log_level": (
        "sampling: {log_level: debug}",
        lambda c: _server(c).sampling.log_level.value,
        "debug",
    ),
    f"{SERVER}.tools.resources": (
        "tools: {resources: false}",
        lambda c: _server(c).tools.resources,
        False,
    ),
    f"{SERVER}.tools.prompts": ("tools: {prompts: 'on'}", lambda c: _server(c).tools.prompts, True),
    f"{SERVER}.lazy": ("lazy: true", lambda c: _server(c).lazy, True),
    f"{SERVER}.keepalive_interval": (
        "keepalive_interval: 60",
        lambda c: _server(c).keepalive_interval,
        60,
    ),
    f"{SERVER}.idle_timeout_seconds": (
        "lifecycle: {idle_timeout_seconds: 9}",
        lambda c: _server(c).idle_timeout_seconds,
        9,
    ),
    f"{SERVER}.max_lifetime_seconds": (
        "max_lifetime_seconds: 9",
        lambda c: _server(c).max_lifetime_seconds,
        9,
    ),
    f"{SERVER}.supports_parallel_tool_calls": (
        "supports_parallel_tool_calls: true",
        lambda c: _server(c).supports_parallel_tool_calls,
        True,
    ),
    f"{SERVER}.exclusive": ("exclusive: true", lambda c: _server(c).exclusive, True),
    f"{SERVER}.max_connections": (
        "max_connections: 2",
        lambda c: _server(c).max_connections,
        2,
    ),
    "mcp_serve.allow_approvals": (
        "mcp_serve: {allow_approvals: off}",
        lambda c: c.mcp_serve.allow_approvals,
        False,
    ),
    "mcp_serve.targets": (
        "mcp_serve: {targets: [telegram:1]}",
        lambda c: c.mcp_serve.targets,
        ("telegram:1",),
    ),
    "mcp_serve.folders": (
        "mcp_serve: {folders: [/srv]}",
        lambda c: c.mcp_serve.folders,
        ("/srv",),
    ),
    "store.retention_days": (
        "store: {retention_days: 90}",
        lambda config: config.store.retention_days,
        90,
    ),
    "logging.level": ("logging: {level: debug}", lambda c: c.logging.level.value, "debug"),
    "logging.format": ("logging: {format: json}", lambda c: c.logging.format.value, "json"),
}


def keys_in_force() -> set[str]:
    """Every key of the schema that has an effect in this version; accounts repeat their section's."""
    later = {".".join(map(str, path)) for path in LATER}
    return {
        key.partition(".*.")[0]
        for key in (*_leaves(KEYS, ""), *fields(McpConfig, "mcp"), *fields(ServerConfig, SERVER))
        if not any(f"{key}.".startswith(f"{path}.") for path in later)
    } - {"mcp", "mcp_servers"}


def _leaves(tree: Tree, path: str) -> Iterator[str]:
    for name, below in tree.items():
        at = f"{path}[]" if name == ITEMS else f"{path}.{name}".removeprefix(".")
        if below is None:
            yield at
        else:
            yield from _leaves(below, at)


@requirement("case.cf8")
def test_the_documentation_names_exactly_the_keys_of_this_version_once() -> None:
    keys = [key for key, _ in documented()]

    assert len(keys) == len(set(keys))
    assert set(keys) == keys_in_force()


@requirement("case.cf8")
def test_each_key_is_documented_in_the_same_form() -> None:
    for key, lines in documented():
        assert list(lines) == ["Type", "Default", "Does", "Example"], key


@requirement("case.cf8")
@pytest.mark.parametrize("key", sorted(keys_in_force() - {"store.url"}))
def test_a_documented_key_changes_what_it_names(key: str, tmp_path: Path) -> None:
    text, read, value = ROWS[key]
    name = key.removeprefix(f"{SERVER}.").partition(".")[0]
    remote = name in {*NETWORK_KEYS, "transport"}
    base = f"mcp_servers:\n  s:\n    {'url: https://x' if remote else 'command: x'}\n"
    home = Home(tmp_path)
    if key in {f"{SERVER}.command", f"{SERVER}.url"}:
        text = base.replace("x", "y")
    elif key.startswith(SERVER):
        text = f"{base}    {text}\n"
    home.config_file.write_text(text)
    loaded = load(home, environ={})
    assert loaded.findings.items == ()
    assert read(loaded.config) == value
    home.config_file.write_text(base)
    default = load(home, environ={}).config
    if key.startswith(("model.", "access.")) and ".rate." not in key:
        assert default.model is None
        assert default.access.tools == ()
        assert default.access.admins == frozenset()
        assert default.access.roles == {}
    else:
        assert read(default) != value


@requirement("case.cf8")
def test_another_store_is_never_replaced_by_the_file_in_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config_file.write_text("store: {url: 'postgresql://u:canary@h/db'}\n")
    with pytest.raises(ConfigError, match=r"store\.url") as caught:
        load(home, environ={})
    assert "canary" not in str(caught.value)


def test_keys_of_later_versions_are_known_and_said_to_have_no_effect(tmp_path: Path) -> None:
    keys = {
        "platforms.discord",
        "web",
    }
    home = Home(tmp_path)
    home.config_file.write_text(
        "platforms: {discord:"
        " {accounts: {a: {gateway_url: x, channel_overrides: {b: {system_prompt: m}}}}}}\n"
        "web: {metrics: off}\n"
    )
    findings = check(home, environ={})
    assert {item.path for item in findings.items} == keys
    assert all("not supported by this version" in item.message for item in findings.items)
