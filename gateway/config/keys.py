"""Every documented key of `config.yaml`: known, known but not in force in this version, or unknown.

`mcp` and `mcp_servers` check their own keys.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from gateway.config.findings import KeyPath, dotted, unknown_key
from gateway.domain.findings import Finding, error, warning

Tree: TypeAlias = "Mapping[str, Tree | None]"

ANY: Final = "*"
"""Stands for every name: the keys are the user's own."""

ITEMS: Final = "[]"
"""Stands for every item of a list."""

_CHANNEL: Final[Tree] = {"model": None, "system_prompt": None}
_ADAPTER: Final[Tree] = {
    "enabled": None,
    "base_url": None,
    "mode": None,
    "allow_from": None,
    "open": None,
    "dm_policy": None,
    "groups": None,
    "require_mention": None,
    "strict_mention": None,
    "allow_bots": None,
    "home_channel": None,
    "streaming": None,
    "channel_overrides": {ANY: _CHANNEL},
}
_TELEGRAM: Final[Tree] = {
    **_ADAPTER,
    "token": None,
    "reply_to": None,
    "webhook": {"url": None, "listen": None, "secret": None},
}
_SLACK: Final[Tree] = {
    **_ADAPTER,
    "bot_token": None,
    "app_token": None,
    "signing_secret": None,
    "listen": None,
    "reply_in_thread": None,
}
_DISCORD: Final[Tree] = {**_ADAPTER, "token": None, "reply_to": None, "gateway_url": None}

KEYS: Final[Tree] = {
    "model": {
        "provider": None,
        "name": None,
        "base_url": None,
        "api_key": None,
        "max_tokens": None,
        "temperature": None,
        "context_window": None,
        "fallbacks": None,
    },
    "gateway": {
        "busy_mode": None,
        "group_sessions_per_user": None,
        "max_rounds": None,
        "turn_timeout": None,
        "workspace": None,
        "system_prompt": None,
    },
    "platforms": {
        "telegram": {**_TELEGRAM, "accounts": {ANY: _TELEGRAM}},
        "slack": {**_SLACK, "accounts": {ANY: _SLACK}},
        "discord": {**_DISCORD, "accounts": {ANY: _DISCORD}},
    },
    "access": {
        "admins": None,
        "roles": {"guest": None, "user": None},
        "tools": {
            ITEMS: {
                "match": {"role": None, "platform": None, "channel": None},
                "allow": None,
                "deny": None,
                "commands": None,
            }
        },
        "rate": {"user_per_minute": None, "chat_per_minute": None, "tokens_per_day": None},
    },
    "approvals": {
        "timeout": None,
        "approvers": None,
        "route": None,
        "quorum": None,
        "redact": None,
    },
    "tools": {"tool_search": {"enabled": None, "threshold_pct": None, "listing_max_tokens": None}},
    "mcp": None,
    "mcp_servers": None,
    "mcp_serve": {"allow_approvals": None, "targets": None, "folders": None},
    "store": {"url": None, "retention_days": None},
    "web": {"listen": None, "metrics": None},
    "logging": {"level": None, "format": None},
}

_UNSET: Final = object()

LATER: Final[Mapping[KeyPath, object]] = {
    ("platforms", "discord"): _UNSET,
    ("web",): _UNSET,
}
"""Documented keys without an effect yet, and the value for which that makes no difference."""


def check_keys(raw: Mapping[str, object]) -> tuple[dict[str, object], tuple[Finding, ...]]:
    """Return what is known of a document, empty values dropped, and what was not.

    A key of a later version stays in the result: its shape is still checked.
    """
    findings: list[Finding] = []
    known = _known(raw, KEYS, (), findings)
    for path, harmless in LATER.items():
        given = _at(known, path)
        if given is not None and str(given).lower() != str(harmless).lower():
            findings.append(
                warning(dotted(path), "is not supported by this version and has no effect")
            )
    return known, tuple(findings)


def _known(
    raw: Mapping[str, object], tree: Tree, path: KeyPath, findings: list[Finding]
) -> dict[str, object]:
    kept: dict[str, object] = {}
    for key, value in raw.items():
        at = (*path, key)
        if key not in tree and ANY not in tree:
            findings.append(unknown_key(at, tree))
            continue
        below = tree.get(key, tree.get(ANY))
        if value is not None:
            kept[key] = value if below is None else _below(value, below, at, findings)
    return kept


def _below(value: object, tree: Tree, path: KeyPath, findings: list[Finding]) -> object:
    if isinstance(value, Mapping):
        return _known(cast("Mapping[str, object]", value), tree, path, findings)
    items = tree.get(ITEMS)
    if items is None or not isinstance(value, list):
        return value
    return [
        _known(cast("Mapping[str, object]", item), items, (*path, at), findings)
        if isinstance(item, Mapping)
        else item
        for at, item in enumerate(cast("list[object]", value))
    ]


def section_of(
    raw: Mapping[str, object], name: str
) -> tuple[dict[str, object], tuple[Finding, ...]]:
    """Return a section, empty when it is not there; anything but a mapping is an error."""
    value = raw.get(name)
    if value is None:
        return {}, ()
    if not isinstance(value, Mapping):
        return {}, (error(name, "must be a mapping (key: value)"),)
    return dict(cast("Mapping[str, object]", value)), ()


def _at(value: object, path: KeyPath) -> object:
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str | int, object]", value).get(key)
    return value
