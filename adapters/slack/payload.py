"""What a delivery carries for Slack besides its text, as JSON. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """How a message looks and what hangs on it.

    `text` is what notifications show of it. `form` opens from its *Answer* button. `bound`: it
    belongs to a question, so it must not be shown to anybody else than was meant. `name` is a
    file's. `silent`: it only stands for a reply that is still made.
    """

    blocks: Sequence[Block] = ()
    text: str = ""
    form: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""
    index: int = 0
    bound: bool = False
    silent: bool = False

    def to_json(self) -> str:
        """Return it without what says nothing."""
        data: dict[str, object] = {
            "blocks": list(self.blocks),
            "text": self.text,
            "form": dict(self.form),
            "name": self.name,
            "index": self.index,
            "bound": self.bound,
            "silent": self.silent,
        }
        return json.dumps({key: value for key, value in data.items() if value})

    @classmethod
    def from_json(cls, text: str) -> "Payload":
        """Read it back; what is missing says nothing."""
        return cls(**cast("Mapping[str, Any]", json.loads(text or "{}")))
