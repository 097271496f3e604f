"""Holds calls and answers to the Bot API's types as aiogram's models describe them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError


class Schema:
    """Every method of the Bot API, by its lower-case name."""

    def __init__(self) -> None:
        # Importing aiogram takes seconds; nobody waits for it who starts no server.
        from aiogram import methods, types

        found = (getattr(methods, name) for name in methods.__all__)
        self._methods: dict[str, Any] = {
            model.__api_method__.lower(): model
            for model in found
            if isinstance(getattr(model, "__api_method__", None), str)
        }
        self._update = TypeAdapter(types.Update)
        self._results: dict[str, TypeAdapter[Any]] = {}

    def knows(self, method: str) -> bool:
        return method.lower() in self._methods

    def of_call(self, method: str, values: Mapping[str, Any]) -> list[str]:
        """Name what is wrong with the parameters of a call."""
        model = self._methods[method.lower()]
        return _wrong(method, lambda: model.model_validate(dict(values)))

    def of_result(self, method: str, result: object) -> list[str]:
        """Name what is wrong with what a method answers."""
        adapter = self._results.get(method)
        if adapter is None:
            model = self._methods[method.lower()]
            adapter = self._results[method] = TypeAdapter(model.__returning__)
        return _wrong(f"answer of {method}", lambda: adapter.validate_python(result))

    def of_update(self, update: Mapping[str, Any]) -> list[str]:
        return _wrong("update", lambda: self._update.validate_python(dict(update)))


@cache
def known_schema() -> Schema:
    """Return the one schema of this process: making it takes seconds."""
    return Schema()


def _wrong(what: str, validate: Any) -> list[str]:
    try:
        value = validate()
    except ValidationError as error:
        return [f"{what}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
    return [f"{what}: {path}: no such field" for path in _unknown(value, "")]


def _unknown(value: object, path: str) -> Iterator[str]:
    """Name the fields the models do not have: they let them through."""
    if isinstance(value, BaseModel):
        for name in value.model_extra or ():
            yield f"{path}{name}"
        for name in value.model_fields_set - (value.model_extra or {}).keys():
            yield from _unknown(getattr(value, name), f"{path}{name}.")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("Sequence[object]", value)):
            yield from _unknown(item, f"{path}{index}.")
