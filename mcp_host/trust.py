"""Who must agree before a tool runs: the operator's policy, then the server's trust. Pure."""

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from gateway.domain.tools import ToolSpec
from mcp_host.filters import first_match
from mcp_host.server_config import PolicyAction, ServerConfig, Trust


class Gate(Enum):
    """`ALLOW`: runs. `ASK`: a person decides first. `DENY`: never runs."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


def gate(config: ServerConfig, tool: ToolSpec) -> Gate:
    """Judge one call by its tool; the first matching policy rule is the operator's last word."""
    known = gate_by_name(config, tool.name)
    if known is not None:
        return known
    return Gate.ALLOW if tool.read_only else Gate.ASK


def gate_by_name(config: ServerConfig, tool: str) -> Gate | None:
    """Judge by the tool's own name alone; None when it depends on what the server says of it."""
    for pattern, action in config.tools.policy:
        if first_match((pattern,), tool) is not None:
            return _of_policy(action)
    match config.trust:
        case Trust.FULL:
            return Gate.ALLOW
        case Trust.UNTRUSTED:
            return None
        case _:
            assert_never(config.trust)


def says_read_only(annotations: Mapping[str, object]) -> bool:
    """Tell whether a server calls its tool read-only; anything but a real `true` does not."""
    return annotations.get("readOnlyHint") is True


def _of_policy(action: PolicyAction) -> Gate:
    match action:
        case PolicyAction.ALLOW:
            return Gate.ALLOW
        case PolicyAction.ASK:
            return Gate.ASK
        case PolicyAction.DENY:
            return Gate.DENY
        case _:
            assert_never(action)
