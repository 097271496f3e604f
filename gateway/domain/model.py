"""What goes to a model and comes back, whatever the provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from gateway.domain.canonical import CanonicalJson


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """One function the model may call; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call as the model wrote it; `id` pairs it with its answer.

    `problem` is set when the arguments were not a JSON object: `arguments` is then `{}` and
    the model must be told.
    """

    id: str
    name: str
    arguments: CanonicalJson
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image that a model sees, as it was received; `media_type` by what is in it."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid:
    """`pictures` are named in the text too, for models that see none."""

    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSaid:
    text: str
    calls: tuple[FunctionCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionAnswer:
    """The result of the call `id`."""

    id: str
    name: str
    text: str
    failed: bool = False
    pictures: tuple[Picture, ...] = ()


ModelMessage: TypeAlias = UserSaid | AssistantSaid | FunctionAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request; `model` "" is the configured one, `max_tokens` None its own limit.

    `allowed_models` names those that may answer, fallbacks too; without any, all may.
    """

    system: str
    history: tuple[ModelMessage, ...]
    functions: tuple[FunctionSpec, ...] = ()
    model: str = ""
    max_tokens: int | None = None
    allowed_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one request."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What the model answered; `model` is the one that really did (`provider:name`)."""

    text: str
    calls: tuple[FunctionCall, ...]
    usage: Usage
    finish: Finish
    model: str = ""
