"""Reads single keywords of a JSON Schema, and refuses what the form grammar has no place for.

Knows no fields and no forms; `schema_form` builds them from what is read here.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final, cast

from gateway.domain.form import MAX_TEXT
from gateway.domain.text import shorten

Schema = Mapping[str, object]
Clean = Callable[[str], str]

LOGIC: Final = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum")
"""Keywords that combine or replace a type."""

_OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "boolean": (),
    "array": ("prefixItems", "additionalItems", "contains", "unevaluatedItems"),
}
_SECRET: Final = re.compile(
    r"(pass ?words?|pass ?phrases?|secrets?|api ?keys?|access ?tokens?)\b", re.IGNORECASE
)
_WORD_BREAK: Final = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|[\W_]+"
)
_DEFINITIONS: Final = ("$defs", "definitions")


class OutsideGrammar(Exception):
    """The grammar has no place for a property; the text says what about it."""


def type_of(schema: Schema) -> str:
    """Return the one type a schema names, "" when it names none."""
    kind = schema.get("type", "")
    if isinstance(kind, list) and len(cast("list[object]", kind)) == 1:
        kind = cast("list[object]", kind)[0]
    if not isinstance(kind, str):
        raise OutsideGrammar("allows several types")
    return kind


def only_known(schema: Schema, kind: str, *known: str) -> None:
    """Refuse a rule that the form would not keep to; unknown keys are notes."""
    for key in (*LOGIC, *_OF_TYPE.get(kind, ())):
        if key in schema and key not in known:
            raise OutsideGrammar(f"uses {key}, which cannot be asked")


def bound_of(schema: Schema, key: str) -> float | None:
    """Return a numeric keyword, None when it is absent."""
    value = schema.get(key)
    if value is None:
        return None
    if not is_scalar(value, "number"):
        raise OutsideGrammar(f"has a {key} that is no number")
    return cast("float", value)


def count_of(schema: Schema, key: str) -> int | None:
    """Return a keyword that counts, None when it is absent."""
    value = schema.get(key)
    if value is None:
        return None
    if not is_scalar(value, "integer") or cast("float", value) < 0:
        raise OutsideGrammar(f"has a {key} that is no count")
    return int(cast("float", value))


def check_order(minimum: float | None, maximum: float | None) -> None:
    """Refuse bounds that nothing fits."""
    if minimum is not None and maximum is not None and minimum > maximum:
        raise OutsideGrammar("has bounds that nothing fits")


def is_scalar(value: object, kind: str) -> bool:
    """Tell whether a value is of that type; "" stands for any single value but null."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            if isinstance(value, float):
                return value.is_integer()
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            if isinstance(value, float):
                return math.isfinite(value)
            return isinstance(value, int) and not isinstance(value, bool)
        case "":
            return isinstance(value, (str, bool)) or is_scalar(value, "number")
        case _:
            return False


def is_texts(value: object) -> bool:
    """Tell whether a value is a list of strings."""
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )


def list_of(schema: Schema, key: str) -> list[object]:
    """Return a keyword's list, empty when it is none."""
    value = schema.get(key)
    return cast("list[object]", value) if isinstance(value, list) else []


def text_of(schema: Schema, key: str) -> str:
    """Return a keyword's string, "" when it is none."""
    value = schema.get(key)
    return value if isinstance(value, str) else ""


def json_key(value: object) -> tuple[str, object]:
    """JSON's own equality: `true` is not 1, and 1.0 is."""
    return ("boolean" if isinstance(value, bool) else "other", value)


def plain_text(value: object) -> str:
    """Return a constant as people write it."""
    return value if isinstance(value, str) else str(value).lower()


def one_line(text: str) -> str:
    """Fold a text to one line of bounded length."""
    return shorten(" ".join(text.split()), MAX_TEXT)


def label_of(name: str, schema: Schema, clean: Clean) -> str:
    """Return what a field is called: its title, else its name."""
    return one_line(clean(text_of(schema, "title"))) or one_line(clean(name)) or "(no name)"


def names_secret(text: str) -> bool:
    """Tell whether a name or title has a word for something secret in it."""
    plain = unicodedata.normalize("NFKC", text)
    visible = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    return _SECRET.search(_WORD_BREAK.sub(" ", visible)) is not None


def standalone(schema: Schema, *, root: Schema) -> Schema:
    """Return `schema` with the definitions it refers to; empty when it refers elsewhere."""
    references = references_of(schema)
    kept: dict[str, object] = {}
    for key in _DEFINITIONS:
        if key in root and any(text.startswith(f"#/{key}/") for text in references):
            kept[key] = root[key]
    local = tuple(f"#/{key}/" for key in _DEFINITIONS)
    everything = [*references, *references_of(kept)]
    if not all(text.startswith(local) for text in everything):
        return {}
    return {**schema, **kept}


def references_of(value: object) -> list[str]:
    """Return every reference in a schema, wherever it stands."""
    found: list[str] = []
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            for key, inner in cast("Mapping[str, object]", item).items():
                if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                    found.append(inner)
                waiting.append(inner)
        elif isinstance(item, list):
            waiting.extend(cast("list[object]", item))
    return found
