"""What a delivery carries for Telegram besides its text, as JSON. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adapters.telegram.buttons import Key, rows_from_json, rows_to_json
from adapters.telegram.forms import Ask
from adapters.telegram.rich import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """How a message looks and what hangs on it.

    `index` counts the messages of one reply. `bound`: it belongs to a question, so it must not be
    shown to anybody else than was meant. `name` is a file's. `silent`: it notifies nobody.
    """

    entities: tuple[Entity, ...] = ()
    rows: tuple[tuple[Key, ...], ...] = ()
    ask: Ask | None = None
    name: str = ""
    index: int = 0
    bound: bool = False
    silent: bool = False

    def to_json(self) -> str:
        """Return it without what says nothing."""
        data: dict[str, object] = {}
        if self.entities:
            data["entities"] = [_entity_to_json(entity) for entity in self.entities]
        if self.rows:
            data["rows"] = rows_to_json(self.rows)
        if self.ask is not None:
            data["ask"] = {"token": self.ask.token, "field": self.ask.field, "hint": self.ask.hint}
        if self.name:
            data["name"] = self.name
        if self.index:
            data["index"] = self.index
        if self.bound:
            data["bound"] = True
        if self.silent:
            data["silent"] = True
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> "Payload":
        """Read it back; what is missing says nothing."""
        data = cast("Mapping[str, Any]", json.loads(text or "{}"))
        ask = data.get("ask")
        return cls(
            entities=tuple(_entity(item) for item in data.get("entities", ())),
            rows=rows_from_json(data.get("rows", ())),
            ask=None if ask is None else Ask(**ask),
            name=data.get("name", ""),
            index=data.get("index", 0),
            bound=data.get("bound", False),
            silent=data.get("silent", False),
        )


def _entity_to_json(entity: Entity) -> Sequence[object]:
    more = (entity.url, entity.language) if entity.url or entity.language else ()
    return (entity.type, entity.offset, entity.length, *more)


def _entity(raw: Sequence[Any]) -> Entity:
    kind, offset, length, *more = raw
    url, language = more or ("", "")
    return Entity(type=kind, offset=offset, length=length, url=url, language=language)
