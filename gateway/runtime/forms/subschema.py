"""Checks a typed JSON value against the subschema of its field. Fetches nothing, runs no long search."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from gateway.domain.form import MAX_TEXT
from gateway.domain.pattern import bounded_pattern
from gateway.domain.text import shorten

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_PROBLEM: Final = 300
"""Characters of a reason; a validator may quote the whole value."""


def schema_problem(schema: Mapping[str, object], value: object) -> str:
    """Return why `value` does not fit, "" when it does or when the schema itself is unusable.

    The server judges once more what it receives, so a schema we cannot apply never blocks an answer.
    """
    if not schema:
        return ""
    # Costs a sixth of a second, and most conversations never type JSON.
    from jsonschema import Draft202012Validator, exceptions, validators
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    document = dict(schema)
    base = validators.validator_for(document, Draft202012Validator)
    # Its stubs leave the parameters of this one untyped.
    extend = cast("Callable[..., Any]", validators.extend)  # pyright: ignore[reportUnknownMemberType]
    nothing: Registry[Any] = Registry()
    try:
        base.check_schema(document)
        careful = extend(base, {"pattern": _pattern})(document, registry=nothing)
        problems = cast("Iterable[ValidationError]", careful.iter_errors(value))
        error = max(problems, key=exceptions.relevance, default=None)
    except (exceptions.SchemaError, Unresolvable, RecursionError, re.error):
        return ""
    if error is None:
        return ""
    where = "".join(f"[{part!r}]" for part in cast("Iterable[object]", error.absolute_path))
    text = f"It does not fit{' at ' + where if where else ''}: {error.message}"
    return shorten(text, MAX_PROBLEM)


def _pattern(
    validator: object, pattern: str, instance: object, schema: object
) -> Iterator[Exception]:
    del validator, schema
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, str) or not bounded_pattern(pattern, length=MAX_TEXT):
        return
    if len(instance) <= MAX_TEXT and not re.search(pattern, instance):
        yield ValidationError(f"{shorten(instance, 60)!r} does not match {pattern!r}")
