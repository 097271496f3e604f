"""The options of a choice: every spelling of an enum becomes constants with labels."""

from collections.abc import Mapping, Sequence
from typing import cast

from gateway.domain.form import MAX_OPTIONS, MAX_TEXT, Option
from gateway.domain.schema_reading import (
    Clean,
    OutsideGrammar,
    Schema,
    is_scalar,
    is_texts,
    json_key,
    list_of,
    one_line,
    only_known,
    plain_text,
    text_of,
    type_of,
)
from gateway.domain.text import shorten


def has_options(schema: Schema) -> bool:
    """Tell whether a schema lists constants to choose from."""
    if "enum" in schema:
        return True
    return any(
        isinstance(member, Mapping) and "const" in member
        for key in ("oneOf", "anyOf")
        for member in list_of(schema, key)
    )


def options_of(schema: Schema, kind: str, clean: Clean) -> tuple[Option, ...]:
    """Return the options of a schema, with their titles cleaned.

    Raises:
        OutsideGrammar: They cannot be offered as they are.
    """
    listed = list_of(schema, "enum")
    constants: list[object] = []
    titles: list[str] = []
    keys = [key for key in ("oneOf", "anyOf") if key in schema]
    if len(keys) > 1:
        raise OutsideGrammar("mixes oneOf and anyOf")
    for member in list_of(schema, keys[0]) if keys else ():
        if not isinstance(member, Mapping) or "const" not in member:
            raise OutsideGrammar("mixes options and types")
        of = cast("Schema", member)
        only_known(of, type_of(of), "const")
        constants.append(of["const"])
        titles.append(text_of(of, "title"))
    if not keys:
        constants, titles = list(listed), _enum_names(schema, len(listed))
    elif "enum" in schema:
        kept = {json_key(value) for value in listed if is_scalar(value, "")}
        pairs = [pair for pair in zip(constants, titles, strict=True) if json_key(pair[0]) in kept]
        constants, titles = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return _checked_options(constants, titles, kind, clean)


def _checked_options(
    constants: Sequence[object], titles: Sequence[str], kind: str, clean: Clean
) -> tuple[Option, ...]:
    if not constants:
        raise OutsideGrammar("offers no options")
    if len(constants) > MAX_OPTIONS:
        raise OutsideGrammar(f"has {len(constants)} options, at most {MAX_OPTIONS} can be offered")
    labels: dict[tuple[str, object], Option] = {}
    for value, title in zip(constants, titles, strict=True):
        if not is_scalar(value, kind):
            raise OutsideGrammar("has an option of another type")
        shown = plain_text(value)
        if len(shown) > MAX_TEXT:
            raise OutsideGrammar(f"has an option of more than {MAX_TEXT} characters")
        label = one_line(clean(title)) or one_line(clean(shown)) or f'"{shown}"'
        if json_key(value) in labels:
            raise OutsideGrammar("has the same option twice")
        labels[json_key(value)] = Option(value=value, label=label)
    return _told_apart(tuple(labels.values()))


def _told_apart(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Options of one label show their constant too: a person must see which one they take."""
    seen = [option.label.casefold() for option in options]
    return tuple(
        option
        if seen.count(option.label.casefold()) == 1
        else Option(value=option.value, label=shorten(f"{option.label} ({option.value})", MAX_TEXT))
        for option in options
    )


def _enum_names(schema: Schema, count: int) -> list[str]:
    names = list_of(schema, "enumNames")
    # Names that do not pair up one to one would label the wrong constants.
    if len(names) != count or not is_texts(names):
        return [""] * count
    return cast("list[str]", names)
