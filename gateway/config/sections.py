"""Turns raw sections into values. A bad value is an error with its path, and never shown."""

import math
from collections.abc import Mapping
from typing import Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from gateway.config.findings import KeyPath, dotted
from gateway.config.keys import section_of
from gateway.config.schema import ToolsConfig
from gateway.domain.errors import ConfigError
from gateway.domain.findings import Finding, error, warning
from gateway.domain.question import ApproverPolicy, Approvers
from gateway.providers.config import Keys, ModelConfig, parse_model
from gateway.runtime.config import AccessConfig, ApprovalsConfig, GatewayConfig
from gateway.telemetry.config import LoggingConfig
from mcp_host.bridge.config import BridgeConfig
from store.config import StoreConfig

T = TypeVar("T")

_DAY: Final = 86_400

_BOUNDS: Final[Mapping[KeyPath, tuple[float, float]]] = {
    ("gateway", "max_rounds"): (1, 1000),
    ("gateway", "turn_timeout"): (1, 7 * _DAY),
    ("approvals", "timeout"): (1, 7 * _DAY),
    ("approvals", "quorum"): (1, 100),
    ("access", "rate", "user_per_minute"): (0, 100_000),
    ("access", "rate", "chat_per_minute"): (0, 100_000),
    ("access", "rate", "tokens_per_day"): (0, 1_000_000_000_000),
    ("tools", "tool_search", "threshold_pct"): (0, 100),
    ("tools", "tool_search", "listing_max_tokens"): (0, 1_000_000),
}


class SectionReader:
    """Reads the sections of one known and resolved document, and collects what is wrong."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        self._raw = raw
        self.findings: list[Finding] = []

    def gateway(self) -> GatewayConfig:
        """Read `gateway`."""
        return self._section("gateway", GatewayConfig)

    def logging(self) -> LoggingConfig:
        """Read `logging`."""
        return self._section("logging", LoggingConfig)

    def tools(self) -> ToolsConfig:
        """Read `tools`."""
        return self._section("tools", ToolsConfig)

    def store(self) -> StoreConfig:
        """Read `store`; a store this version cannot open must not become another one."""
        found = self._section("store", StoreConfig)
        if found.url:
            problem = 'only "" (SQLite in the home) is supported by this version'
            self.findings.append(error("store.url", problem))
        return found

    def approvals(self) -> ApprovalsConfig:
        """Read `approvals`; `approvers` is a word or a list of people."""
        section = self._mapping("approvals")
        if "approvers" in section:
            approvers = _approvers(section.pop("approvers"))
            if approvers is None:
                problem = "must be requester, admins or a list of people (platform:id)"
                self.findings.append(error("approvals.approvers", problem))
            else:
                section["approvers"] = approvers
                self._check_people(("approvals", "approvers"), approvers.ids)
        return self._value(section, ("approvals",), ApprovalsConfig)

    def access(self) -> AccessConfig:
        """Read `access`."""
        found = self._section("access", AccessConfig)
        self._check_people(("access", "admins"), found.admins)
        for role, people in found.roles.items():
            self._check_people(("access", "roles", role.value), people)
        return found

    def model(self, keys: Keys) -> ModelConfig | None:
        """Read `model`, missing keys filled in from the environment; None is guided mode."""
        raw = self._raw.get("model")
        if raw is None or raw in ({}, ""):
            return None
        try:
            return parse_model(raw).with_keys(keys)
        except ConfigError as problem:
            self.findings.append(error(problem.path, problem.problem))
            return None

    def mcp_serve(self) -> BridgeConfig:
        """Read `mcp_serve`."""
        return self._section("mcp_serve", BridgeConfig)

    def plain(self, name: str) -> dict[str, object]:
        """Return a section nothing of this version reads."""
        return self._mapping(name)

    def _mapping(self, name: str) -> dict[str, object]:
        section, findings = section_of(self._raw, name)
        self.findings += findings
        return section

    def _section(self, name: str, kind: type[T]) -> T:
        return self._value(self._mapping(name), (name,), kind)

    def _value(self, section: dict[str, object], path: KeyPath, kind: type[T]) -> T:
        """Validate; what is wrong leaves its default, so that the rest can be checked as well."""
        adapter = TypeAdapter(kind)
        try:
            found = adapter.validate_python(section)
        except ValidationError as problems:
            for detail in problems.errors(include_input=False, include_url=False):
                self.findings.append(
                    error(dotted((*path, *_place(detail["loc"]))), _say(detail["msg"]))
                )
                section.pop(str(detail["loc"][0]) if detail["loc"] else "", None)
            found = adapter.validate_python(section)
        self._check_bounds(section, path)
        return found

    def _check_bounds(self, section: Mapping[str, object], path: KeyPath) -> None:
        for place, (lowest, highest) in _BOUNDS.items():
            if place[: len(path)] != path:
                continue
            value = _number_at(section, place[len(path) :])
            if value is not None and not (math.isfinite(value) and lowest <= value <= highest):
                self.findings.append(
                    error(dotted(place), f"must be between {lowest:g} and {highest:g}")
                )

    def _check_people(self, path: KeyPath, people: frozenset[str] | tuple[str, ...]) -> None:
        for person in sorted(people):
            platform, mark, name = person.partition(":")
            if not (platform and mark and name):
                message = "names nobody: a person is written platform:id, like telegram:111"
                self.findings.append(warning(dotted(path), message))


def _approvers(raw: object) -> Approvers | None:
    if isinstance(raw, str) and raw in {ApproverPolicy.REQUESTER, ApproverPolicy.ADMINS}:
        return Approvers(policy=ApproverPolicy(raw))
    if isinstance(raw, list):
        people = cast("list[object]", raw)
        if people and all(isinstance(person, str) for person in people):
            return Approvers(policy=ApproverPolicy.LIST, ids=tuple(cast("list[str]", people)))
    return None


def _number_at(section: object, path: KeyPath) -> float | None:
    for key in path:
        if not isinstance(section, Mapping):
            return None
        section = cast("Mapping[str | int, object]", section).get(key)
    try:
        return float(cast("float", section)) if section is not None else None
    except (TypeError, ValueError):
        return None


def _place(location: tuple[int | str, ...]) -> KeyPath:
    return tuple(part for part in location if part != "[key]")


def _say(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should be", "must be", 1)
