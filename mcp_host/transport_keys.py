"""Which transport an entry means, and which of its keys that leaves out. Reads no values of others.

A key of the other transport warns and is dropped, so that nothing downstream can act on it.
"""

import difflib
from collections.abc import Mapping
from typing import Final, cast

from pydantic import ValidationError

from gateway.domain.findings import Finding, warning
from mcp_host.network_config import IdentityHeader, IdentitySource, Transport
from mcp_host.sanitize import show_name

_SYNONYMS: Final = {
    "stdio": Transport.STDIO,
    "http": Transport.HTTP,
    "https": Transport.HTTP,
    "streamablehttp": Transport.HTTP,
    "sse": Transport.SSE,
}
STDIO_KEYS: Final = frozenset(
    {
        "command",
        "args",
        "env",
        "cwd",
        "idle_timeout_seconds",
        "max_lifetime_seconds",
        "lifecycle",
    }
)
NETWORK_KEYS: Final = frozenset(
    {
        "url",
        "headers",
        "ssl_verify",
        "client_cert",
        "client_key",
        "identity_header",
        "auth",
        "oauth",
        "skip_preflight",
    }
)
_IDENTITY_KEYS: Final = tuple(IdentityHeader.model_fields)


class NoTransport(ValueError):
    """The entry names no server; the text says what is missing."""


def settle_transport(path: str, entry: dict[str, object], *, profile: str) -> list[Finding]:
    """Put the transport into the entry and take out what it does not use.

    Raises:
        NoTransport: There is neither a command nor a URL, or not the one that `type` needs.
    """
    findings: list[Finding] = []
    transport = _transport(path, entry, findings)
    entry["transport"] = transport
    needed = "command" if transport is Transport.STDIO else "url"
    if needed not in entry:
        raise NoTransport(f"has no {needed}")
    other = NETWORK_KEYS if transport is Transport.STDIO else STDIO_KEYS
    for key in [key for key in entry if key in other]:
        del entry[key]
        why = f"belongs to a server with a {'url' if needed == 'command' else 'command'}"
        if {key, needed} == {"command", "url"}:
            why = f"{needed} is used in its place"
        findings.append(warning(f"{path}.{key}", f"is ignored: {why}"))
    findings += _settle_identity(path, entry, profile)
    if "client_key" in entry and "client_cert" not in entry:
        del entry["client_key"]
        findings.append(warning(f"{path}.client_key", "is ignored without a client_cert"))
    return findings


def _transport(path: str, entry: dict[str, object], findings: list[Finding]) -> Transport:
    chosen: dict[str, Transport] = {}
    for key in ("transport", "type"):
        value = entry.pop(key, None)
        if value is None:
            continue
        word = str(value).lower().replace("-", "").replace("_", "")
        if word in _SYNONYMS:
            chosen[key] = _SYNONYMS[word]
            continue
        near = difflib.get_close_matches(word, _SYNONYMS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        line = f"is none of stdio, http and sse{hint}: url or command decides"
        findings.append(warning(f"{path}.{key}", line))
    if len(set(chosen.values())) > 1:
        findings.append(warning(f"{path}.type", "is ignored: transport says another one"))
    for transport in chosen.values():
        return transport
    if "url" in entry:
        return Transport.HTTP
    if "command" in entry:
        return Transport.STDIO
    raise NoTransport("has no command and no url")


def _settle_identity(path: str, entry: dict[str, object], profile: str) -> list[Finding]:
    """Fill in the profile's name; what cannot be used is left out, the server is not."""
    raw = entry.pop("identity_header", None)
    if raw is None:
        return []
    at = f"{path}.identity_header"
    if not isinstance(raw, Mapping):
        return [warning(at, "is ignored: it must be a mapping")]
    block = {str(key): value for key, value in cast("Mapping[object, object]", raw).items()}
    findings = [
        warning(f"{at}.{show_name(key, limit=80)}", "is not a known key")
        for key in block
        if key not in _IDENTITY_KEYS
    ]
    block = {key: value for key, value in block.items() if value is not None}
    if block.get("value_from") == IdentitySource.PROFILE:
        block["value"] = profile
    try:
        found = IdentityHeader.model_validate(block)
    except ValidationError as error:
        detail = error.errors(include_input=False, include_url=False, include_context=False)[0]
        key = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
        return [*findings, warning(f"{at}.{key}", f"{message}; identity_header is ignored")]
    entry["identity_header"] = found
    return findings
