"""The form model: elicitation, guided arguments and `/call` without JSON share it (CONTRACTS §d)."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final


class Unset(Enum):
    """Tells "no default" from the default `null`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET

MAX_FIELDS: Final = 30
MAX_OPTIONS: Final = 200
MAX_TEXT: Final = 2_000
"""Characters of any text of a form, after sanitising."""


class FieldKind(StrEnum):
    """How a field is asked and what its answer is; `JSON` occurs in guided forms only."""

    BOOLEAN = "boolean"
    CHOICE = "choice"
    MULTI = "multi"
    TEXT = "text"
    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATE_TIME = "date-time"
    NUMBER = "number"
    INTEGER = "integer"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One constant that may be chosen, and what is shown for it."""

    value: object
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One thing to ask.

    `minimum` and `maximum` bound the number, the length of a text, or how many are chosen,
    by kind. `pattern` is the schema's regular expression for a text. `schema` is the
    subschema a `JSON` field is checked against.
    """

    name: str
    kind: FieldKind
    label: str
    help: str = ""
    required: bool = True
    default: object | Unset = UNSET
    options: tuple[Option, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What to ask; no fields means a plain confirmation. `root`: the one `JSON` field is the whole value."""

    message: str
    fields: tuple[FormField, ...] = ()
    root: bool = False

    def find_field(self, name: str) -> FormField | None:
        """Return the field of that name, or None."""
        return next((item for item in self.fields if item.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormState:
    """How far a form asked field by field has come; `field` "" is the review (schema.sql, form_progress)."""

    rev: int
    field: str
    answers: Mapping[str, object] = dataclasses.field(default_factory=dict[str, object])
    skipped: frozenset[str] = frozenset()


class FormAction(StrEnum):
    """MCP's three ends of an elicitation."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAnswer:
    """What a person answered; `content` only with `ACCEPT`, `reason` says why otherwise.

    `asked` is False when it was put to nobody.
    """

    action: FormAction
    content: Mapping[str, object] | None = None
    reason: str = ""
    asked: bool = True
