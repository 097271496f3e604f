"""Reads the keys of a server's life that may also stand below `lifecycle`."""

from collections.abc import Mapping
from typing import cast

from gateway.domain.findings import Finding, warning
from mcp_host.lifecycle_config import LIFECYCLE_KEYS
from mcp_host.sanitize import show_name


def settle_lifecycle(path: str, entry: dict[str, object]) -> list[Finding]:
    """Lift what stands below `lifecycle` into the entry; a key of the entry itself wins."""
    below = entry.pop("lifecycle", None)
    if below is None:
        return []
    at = f"{path}.lifecycle"
    if not isinstance(below, Mapping):
        return [warning(at, "is ignored: it must be a mapping")]
    findings: list[Finding] = []
    for key, value in cast("Mapping[object, object]", below).items():
        name = str(key)
        if name not in LIFECYCLE_KEYS:
            line = f"is not a known key (it may hold {' and '.join(LIFECYCLE_KEYS)})"
            findings.append(warning(f"{at}.{show_name(name, limit=80)}", line))
        elif name in entry:
            findings.append(warning(f"{at}.{name}", f"is ignored: the entry has its own {name}"))
        elif value is not None:
            entry[name] = value
    return findings
