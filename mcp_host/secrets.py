"""Keeps what a server's entry holds secret out of what the server says. Pure.

Servers echo their environment and their headers in results and errors, which models and people
then read.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final, cast

from gateway.domain.tools import ToolFile, ToolResult
from gateway.telemetry.redact import Redactor
from gateway.telemetry.secrets import secrets_of
from mcp_host.server_config import ServerConfig

_PLACES: Final = frozenset({"args", "env", "url", "headers", "client_cert", "oauth"})


def without_secrets(
    result: ToolResult, config: ServerConfig, *, tokens: frozenset[str] = frozenset()
) -> ToolResult:
    """Return a result in which every secret of the server's entry, and of its sign-in, is masked."""
    named = secrets_of(config.model_dump(include=set(_PLACES), exclude_defaults=True))
    known = tokens.union(named)
    if not known:
        return result
    redactor = Redactor(known)
    structured = result.structured
    return dataclasses.replace(
        result,
        text=redactor.hide_known(result.text),
        structured=None if structured is None else _mapping(structured, redactor),
        meta=_mapping(result.meta, redactor),
        attachments=tuple(_masked(file, redactor) for file in result.attachments),
    )


def _masked(file: ToolFile, redactor: Redactor) -> ToolFile:
    """Mask what is a text of ours; a server's own files are as it made them."""
    if file.for_chat:
        return file
    text = redactor.hide_known(file.data.decode("utf-8", "replace"))
    return dataclasses.replace(file, data=text.encode("utf-8", "replace"))


def _mapping(value: Mapping[str, object], redactor: Redactor) -> dict[str, object]:
    return {redactor.hide_known(key): _hidden(item, redactor) for key, item in value.items()}


def _hidden(value: object, redactor: Redactor) -> object:
    if isinstance(value, str):
        return redactor.hide_known(value)
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[str, object]", value), redactor)
    if isinstance(value, list | tuple):
        return [_hidden(item, redactor) for item in cast("list[object]", value)]
    return value
