"""The functions offered to a model. Says what they are, not what they do."""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.domain.model import FunctionSpec
from gateway.domain.tools import ToolSpec

SEARCH: Final = "tool_search"
DESCRIBE: Final = "tool_describe"
CALL: Final = "tool_call"
CHOICE: Final = "ask_choice"
ARGUMENTS: Final = "ask_arguments"

DEFAULT_RESULTS: Final = 5
MAX_RESULTS: Final = 25
MAX_QUERIES: Final = 10
MAX_NAMES: Final = 25
MAX_CALLS: Final = 20


def _object(properties: Mapping[str, object], *required: str) -> Mapping[str, object]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


TOOL_FUNCTIONS: Final = (
    FunctionSpec(
        name=SEARCH,
        description=(
            "Find tools of the connected MCP servers. Give one query for each thing you need, "
            "in plain words. Returns names and descriptions, best first."
        ),
        parameters=_object(
            {
                "queries": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MAX_QUERIES,
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_RESULTS,
                    "default": DEFAULT_RESULTS,
                    "description": "Results for each query.",
                },
            },
            "queries",
        ),
    ),
    FunctionSpec(
        name=DESCRIBE,
        description="Return the full description and the parameters of tools, by name.",
        parameters=_object(
            {
                "names": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MAX_NAMES,
                }
            },
            "names",
        ),
    ),
    FunctionSpec(
        name=CALL,
        description=(
            "Call one or more tools by name. They run one after another; a tool that changes "
            "something may first be put to a person for approval."
        ),
        parameters=_object(
            {
                "calls": {
                    "type": "array",
                    "items": _object(
                        {"name": {"type": "string"}, "arguments": {"type": "object"}}, "name"
                    ),
                    "minItems": 1,
                    "maxItems": MAX_CALLS,
                }
            },
            "calls",
        ),
    ),
)
"""What stands in for all MCP tools while these are deferred."""

ASKING_FUNCTIONS: Final = (
    FunctionSpec(
        name=CHOICE,
        description="Let the person pick one of several options.",
        parameters=_object(
            {
                "message": {"type": "string"},
                "options": {
                    "type": "array",
                    "items": _object(
                        {"value": {"type": "string"}, "label": {"type": "string"}}, "value"
                    ),
                    "minItems": 1,
                },
            },
            "message",
            "options",
        ),
    ),
    FunctionSpec(
        name=ARGUMENTS,
        description="Let the person fill in the arguments of a tool.",
        parameters=_object({"tool": {"type": "string"}}, "tool"),
    ),
)
"""What a provider that works with a person gets besides."""

CORE_NAMES: Final = frozenset(spec.name for spec in (*TOOL_FUNCTIONS, *ASKING_FUNCTIONS))


def direct_functions(tools: Sequence[ToolSpec]) -> tuple[FunctionSpec, ...]:
    """Return every tool as a function of its own."""
    return tuple(
        FunctionSpec(
            name=spec.alias,
            description=spec.description or spec.title or spec.name,
            parameters=_parameters(spec),
        )
        for spec in tools
    )


def _parameters(spec: ToolSpec) -> Mapping[str, object]:
    # Providers refuse a function whose parameters are no object; a server may leave the type out.
    return {"properties": {}, **spec.input_schema, "type": "object"}
