"""Estimates of how much of a model's window something takes. Counts characters, knows no tokenizer."""

import json
from collections.abc import Iterable
from typing import Final, assert_never

from gateway.domain.model import (
    AssistantSaid,
    FunctionAnswer,
    FunctionSpec,
    ModelMessage,
    UserSaid,
)

CHARACTERS_PER_TOKEN: Final = 4
UNKNOWN_WINDOW: Final = 128_000
_MESSAGE_OVERHEAD: Final = 4
_PICTURE_TOKENS: Final = 1_600
"""Of a picture of common size; services count by its sides."""


def window_of(context_window: int | None) -> int:
    """Return the window to plan with."""
    return context_window or UNKNOWN_WINDOW


def tokens_in(text: str) -> int:
    """Return the estimate for a text."""
    return len(text) // CHARACTERS_PER_TOKEN + 1


def message_tokens(messages: Iterable[ModelMessage]) -> int:
    """Return the estimate for messages, calls included."""
    return sum(_of_message(message) for message in messages)


def function_tokens(functions: Iterable[FunctionSpec]) -> int:
    """Return the estimate for the functions of a request."""
    return sum(
        tokens_in(spec.name + spec.description) + tokens_in(json.dumps(dict(spec.parameters)))
        for spec in functions
    )


def _of_message(message: ModelMessage) -> int:
    match message:
        case UserSaid() | FunctionAnswer():
            pictures = len(message.pictures) * _PICTURE_TOKENS
            return _MESSAGE_OVERHEAD + tokens_in(message.text) + pictures
        case AssistantSaid():
            calls = sum(tokens_in(call.name + call.arguments) for call in message.calls)
            return _MESSAGE_OVERHEAD + tokens_in(message.text) + calls
        case _:
            assert_never(message)
