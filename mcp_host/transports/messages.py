"""JSON-RPC messages as bytes and back, leniently: one bad answer must not leave its call waiting."""

import json
from typing import Final, cast

import mcp_types as wire
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

MAX_MESSAGE: Final = 64 << 20
"""What one message may have at most, in bytes; memory is bounded by it."""


def encode(message: wire.JSONRPCMessage) -> bytes:
    """Return the message as JSON."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        # An unpaired surrogate has no UTF-8; as an escape it can travel.
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()


def parse(raw: bytes) -> wire.JSONRPCMessage | None:
    """Return the message; an error in its place when an answer cannot be read, else None."""
    try:
        return wire.jsonrpc_message_adapter.validate_json(raw, by_name=False)
    except ValidationError:
        pass
    # Once more, slower: Python's reader takes bad bytes and unpaired surrogates.
    try:
        value: object = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    try:
        return wire.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _malformed(value)


def too_long(request: wire.RequestId) -> wire.JSONRPCError:
    """Stand in for an answer that was too long to be kept."""
    return failure(
        request, wire.INTERNAL_ERROR, f"the answer was longer than {MAX_MESSAGE >> 20} MiB"
    )


def failure(request: wire.RequestId, code: int, text: str) -> wire.JSONRPCError:
    """Return an answer that says what went wrong."""
    return wire.JSONRPCError(
        jsonrpc="2.0", id=request, error=wire.ErrorData(code=code, message=text)
    )


def _malformed(value: object) -> wire.JSONRPCMessage | None:
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, object]", value)
    identifier = found.get("id")
    if "method" in found or not isinstance(identifier, int):
        return None
    return failure(identifier, wire.INTERNAL_ERROR, "the answer was malformed")
