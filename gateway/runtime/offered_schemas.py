"""Which tools can be offered to a model as functions of their own: those whose schema is one.

A provider refuses a request as a whole for one malformed schema in it.
"""

import json
import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, cast

from gateway.domain.text import shorten
from gateway.domain.tools import ToolSpec

logger = logging.getLogger(__name__)

REMEMBERED: Final = 10_000
MAX_PROBLEM: Final = 200


def offerable(tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return the tools a provider accepts; each of the others is named in one warning."""
    return tuple(spec for spec in tools if _is_sound(spec.alias, json.dumps(spec.input_schema)))


# Judging takes milliseconds and every request needs it; what is judged once is also told once.
@lru_cache(maxsize=REMEMBERED)
def _is_sound(alias: str, schema: str) -> bool:
    problem = _problem(cast("dict[str, object]", json.loads(schema)))
    if problem:
        logger.warning("tool %s is not offered to the model: its schema %s", alias, problem)
    return not problem


def _problem(schema: dict[str, object]) -> str:
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return "is not that of an object"
    # Most installations never get here: tools are reached by search unless that is switched off.
    from jsonschema import Draft202012Validator, exceptions

    try:
        Draft202012Validator.check_schema(schema)
    except exceptions.SchemaError as error:
        where = ".".join(str(part) for part in error.absolute_path)
        return shorten(f"is malformed{' at ' + where if where else ''}", MAX_PROBLEM)
    except RecursionError:
        return "is nested too deeply"
    return ""
