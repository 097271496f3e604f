"""The configuration in force, for people to read: defaults filled in, secrets left out."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final, cast

from pydantic import BaseModel, SecretStr

from gateway.config.findings import KeyPath
from gateway.config.load import Loaded
from gateway.config.secrets import is_secret
from gateway.config.writer import dump
from gateway.domain.question import ApproverPolicy, Approvers
from gateway.telemetry.redact import MIN_SECRET

HIDDEN: Final = "••••"
_SECTIONS: Final = (
    "model",
    "gateway",
    "access",
    "approvals",
    "tools",
    "mcp",
    "mcp_servers",
    "store",
    "logging",
)


def effective(loaded: Loaded) -> dict[str, object]:
    """Return what is in force as plain values.

    A value from the environment is shown as the placeholder it was written as, a secret as `••••`.
    """
    found = {name: _plain(getattr(loaded.config, name)) for name in _SECTIONS}
    placeholders = {lookup.path: _at(loaded.shown, lookup.path) for lookup in loaded.lookups}
    secrets = sorted(loaded.secrets, key=len, reverse=True)
    return {name: _hide(value, (name,), placeholders, secrets) for name, value in found.items()}


def as_yaml(values: Mapping[str, object]) -> str:
    """Write the values as a `config.yaml` would hold them."""
    return dump(values)


def _plain(value: object) -> object:
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, Enum):
        return cast("object", value.value)
    if isinstance(value, Approvers):
        return list(value.ids) if value.policy is ApproverPolicy.LIST else value.policy.value
    if isinstance(value, BaseModel):
        names = type(value).model_fields
        return {name: _field(name, getattr(value, name)) for name in names}
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, object]", value)
        return {str(_plain(key)): _plain(item) for key, item in mapping.items()}
    if isinstance(value, frozenset):
        return sorted(str(item) for item in cast("frozenset[object]", value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value


def _field(name: str, value: object) -> object:
    if name == "policy" and isinstance(value, tuple):
        return {glob: _plain(action) for glob, action in cast("tuple[tuple[str, object]]", value)}
    return _plain(value)


def _hide(
    value: object, path: KeyPath, placeholders: Mapping[KeyPath, object], secrets: Sequence[str]
) -> object:
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {
            key: _hide(item, (*path, key), placeholders, secrets) for key, item in mapping.items()
        }
    if isinstance(value, list):
        return [
            _hide(item, (*path, at), placeholders, secrets)
            for at, item in enumerate(cast("list[object]", value))
        ]
    if value is None or value == "":
        return value
    if isinstance(value, str) and is_secret(path):
        return HIDDEN
    if path in placeholders:
        return placeholders[path]
    return _masked(value, secrets) if isinstance(value, str) else value


def _masked(text: str, secrets: Sequence[str]) -> str:
    for secret in (secret for secret in secrets if len(secret) >= MIN_SECRET):
        text = text.replace(secret, HIDDEN)
    return text


def _at(value: object, path: KeyPath) -> object:
    for key in path:
        if isinstance(value, Mapping):
            value = cast("Mapping[str | int, object]", value).get(key)
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(key, int):
            value = cast("Sequence[object]", value)[key]
    return cast("object", value)
