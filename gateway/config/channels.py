"""`channel_overrides` of the platforms: what single channels have different. Pure; asks no model.

A platform's account has the overrides of its section unless it has its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from gateway.domain.errors import ConfigError
from gateway.domain.findings import Finding, error
from gateway.domain.ids import Account
from gateway.providers.config import Keys, ModelConfig, parse_model

KEY: Final = "channel_overrides"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """Of one channel or thread; None is as for the rest.

    `broken` is why the model that was meant cannot be used: then none answers there, since
    another one might not be meant to hear what is said in that channel.
    """

    model: ModelConfig | None = field(default=None, repr=False)
    system_prompt: str | None = None
    broken: str = ""


Channels = Mapping[Account, Mapping[str, ChannelSettings]]


def parse_channels(
    platforms: object, *, keys: Keys
) -> tuple[dict[Account, Mapping[str, ChannelSettings]], tuple[Finding, ...]]:
    """Read the overrides of every platform's accounts, by `chat` or `chat:thread`."""
    found: dict[Account, Mapping[str, ChannelSettings]] = {}
    findings: list[Finding] = []
    for account, raw, path in _sections(platforms):
        parser = _Parser(keys, findings)
        channels = parser.channels(raw, path)
        if channels:
            found[account] = channels
    return found, tuple(dict.fromkeys(findings))


def _sections(platforms: object) -> Iterator[tuple[Account, object, str]]:
    for platform, section in _items(platforms):
        general, path = _at(section, KEY), f"platforms.{platform}"
        yield (platform, ""), general, f"{path}.{KEY}"
        for name, entry in _items(_at(section, "accounts")):
            own = _at(entry, KEY)
            where = f"{path}.{KEY}" if own is None else f"{path}.accounts.{name}.{KEY}"
            yield (platform, name), general if own is None else own, where


class _Parser:
    def __init__(self, keys: Keys, findings: list[Finding]) -> None:
        self._keys = keys
        self._findings = findings

    def channels(self, raw: object, path: str) -> dict[str, ChannelSettings]:
        if raw is None:
            return {}
        if not isinstance(raw, Mapping):
            self._findings.append(error(path, "must map chats to what is different there"))
            return {}
        return {
            name: self._channel(entry, f"{path}.{name}")
            for name, entry in _items(cast("object", raw))
            if entry is not None
        }

    def _channel(self, raw: object, path: str) -> ChannelSettings:
        if not isinstance(raw, Mapping):
            problem = "must be a mapping with model or system_prompt"
            self._findings.append(error(path, problem))
            return ChannelSettings(broken=f"its entry {problem}")
        prompt = _at(cast("object", raw), "system_prompt")
        if prompt is not None and not isinstance(prompt, str):
            self._findings.append(error(f"{path}.system_prompt", "must be text"))
            prompt = None
        model, broken = self._model(_at(cast("object", raw), "model"), f"{path}.model")
        return ChannelSettings(model=model, system_prompt=prompt, broken=broken)

    def _model(self, raw: object, path: str) -> tuple[ModelConfig | None, str]:
        if raw is None:
            return None, ""
        from gateway.providers.models import check_model

        try:
            model = parse_model(raw, path=path).with_keys(self._keys)
            check_model(model, path=path)
        except ConfigError as problem:
            self._findings.append(error(problem.path, problem.problem))
            return None, problem.problem
        return model, ""


def _items(raw: object) -> list[tuple[str, object]]:
    if not isinstance(raw, Mapping):
        return []
    return [(str(key), item) for key, item in cast("Mapping[object, object]", raw).items()]


def _at(raw: object, key: str) -> object:
    return cast("Mapping[str, object]", raw).get(key) if isinstance(raw, Mapping) else None
