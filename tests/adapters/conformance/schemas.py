"""The schemas a server may ask by, over the whole grammar, with what is answered and what must leave."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One form.

    `answers` are given in order by a field's label: what is typed or pressed, None to leave it
    out, or several presses. `wrong` is typed first: the label, the text and what must be said of it.
    """

    name: str
    schema: Mapping[str, Any]
    answers: Sequence[tuple[str, str | list[str] | None]]
    content: Mapping[str, Any]
    wrong: Sequence[tuple[str, str, str]]

    @property
    def params(self) -> Mapping[str, object]:
        """What a server sends to ask this."""
        return {"mode": "form", "message": "Please fill this in.", "requestedSchema": self.schema}

    def mistakes(self, label: str) -> Sequence[tuple[str, str]]:
        """Return what is wrong for a field, each with what must be said of it."""
        return [(text, says) for at, text, says in self.wrong if at == label]


CASES: Final[tuple[Case, ...]] = tuple(
    Case(**item)
    for item in json.loads(Path(__file__).with_name("schemas.json").read_text(encoding="utf-8"))
)
