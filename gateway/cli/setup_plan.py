"""What `hermes gateway setup` would write, from what is there and what is wanted. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from gateway.app.setups import PlatformSetup
    from gateway.providers.config import ModelConfig

Changes: TypeAlias = dict[tuple[str, ...], object]
_OFF: Final = frozenset({"false", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The documents as they are written, nothing resolved; `env` are the variables of `.env`."""

    document: Mapping[str, object]
    env: Mapping[str, str] = field(repr=False)
    platform: str

    @property
    def section(self) -> Mapping[str, object]:
        """The platform's own."""
        return _mapping(_mapping(self.document.get("platforms")).get(self.platform))

    @property
    def base_url(self) -> str | None:
        """Where the platform is, None for its own address."""
        url = self.section.get("base_url")
        return url if isinstance(url, str) and url else None

    @property
    def people(self) -> list[str]:
        """Who may talk."""
        return _ids(self.section.get("allow_from"))

    @property
    def pairs(self) -> bool:
        """Whether strangers get a pairing code while nobody is listed."""
        return str(self.section.get("dm_policy")).lower() != "ignore"

    @property
    def admins(self) -> list[str]:
        """The admins of all platforms."""
        return _ids(_mapping(self.document.get("access")).get("admins"))

    @property
    def model(self) -> str:
        """What the configured model is called, "" without one."""
        from gateway.domain.errors import ConfigError
        from gateway.providers.config import parse_model

        model = self.document.get("model")
        if model in (None, "", {}):
            return ""
        try:
            return parse_model(model).label
        except ConfigError:
            return "what is configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for. `model` None leaves it; `no_model` takes it out; `key` is (variable, value)."""

    secrets: Mapping[str, str] = field(repr=False)
    allow: Sequence[str] = ()
    admins: Sequence[str] = ()
    base_url: str | None = None
    model: "ModelConfig | None" = None
    no_model: bool = False
    key: tuple[str, str] | None = field(default=None, repr=False)


@dataclass(slots=True, kw_only=True)
class Plan:
    """`changes` of config.yaml, `variables` of .env, and what of both is set to something else now."""

    changes: Changes = field(default_factory=dict[tuple[str, ...], object])
    variables: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    replaces: list[str] = field(default_factory=list[str])

    @property
    def names(self) -> list[str]:
        """The changed keys, dotted."""
        return sorted(".".join(parts) for parts in self.changes)

    def put(self, at: tuple[str, ...], now: object, value: object, *, adds: bool = False) -> None:
        """Set a key unless it is so already; `adds` takes nothing away."""
        if now == value:
            return
        if now not in (None, "", []) and not adds:
            self.replaces.append(".".join(at))
        self.changes[at] = value


def planned(present: Present, setup: "PlatformSetup", wanted: Wanted) -> Plan:
    """Return what is different from what there is; people are added, never taken away."""
    from gateway.config.writer import REMOVED

    plan, at = Plan(), ("platforms", present.platform)
    for each in setup.secrets:
        placeholder = f"${{{each.variable}}}"
        plan.put((*at, each.key), present.section.get(each.key), placeholder)
        _variable(plan, present, each.variable, wanted.secrets[each.key])
    if str(present.section.get("enabled")).lower() in _OFF:
        plan.put((*at, "enabled"), present.section.get("enabled"), True)
    if wanted.base_url:
        plan.put((*at, "base_url"), present.base_url, wanted.base_url)
    allow = list(dict.fromkeys([*present.people, *wanted.allow, *wanted.admins]))
    if allow != present.people:
        plan.put((*at, "allow_from"), None, allow)
    new = [f"{present.platform}:{person}" for person in wanted.admins]
    admins = list(dict.fromkeys([*present.admins, *new]))
    if admins != present.admins:
        plan.put(("access", "admins"), None, admins)
    if wanted.model is not None:
        plan.put(("model",), present.model, wanted.model.label)
    elif wanted.no_model and present.model:
        plan.put(("model",), present.model, REMOVED)
    if wanted.key is not None:
        _variable(plan, present, *wanted.key)
    return plan


def _variable(plan: Plan, present: Present, name: str, value: str) -> None:
    now = present.env.get(name, "")
    if now == value:
        return
    if now:
        plan.replaces.append(name)
    plan.variables[name] = value


def _ids(value: object) -> list[str]:
    """Return ids as the configuration may write them: a list, one alone, or text with commas."""
    if isinstance(value, list):
        return [str(item).strip() for item in cast("list[object]", value)]
    text = str(value) if isinstance(value, str | int) else ""
    return [part.strip() for part in text.split(",") if part.strip()]


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
