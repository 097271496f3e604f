"""Rows to domain values and back; the only place that knows how a value is spelled in a column.

Knows no SQL and no driver: a row is anything that is asked by column name.
"""

from store.codec.columns import (
    EPOCH,
    RowLike,
    clean,
    decode_text,
    from_json,
    from_ms,
    from_ms_or_none,
    list_from_json,
    ms,
    ms_or_none,
    object_from_json,
    readable,
    storable,
    to_json,
)
from store.codec.deliveries import delivery_from_row, marks_from_text, marks_to_text
from store.codec.events import event_from_json, event_kind, event_to_json, given_in
from store.codec.files import file_from_row
from store.codec.forms import form_from_json, form_state_from_row, form_to_json
from store.codec.pairing import pairing_from_row
from store.codec.places import actor_from_text, actor_or_none, place_from_row
from store.codec.questions import (
    action_or_withdraw,
    actions_from_json,
    actions_to_json,
    approvers_from_json,
    approvers_to_json,
    attempt_from_row,
    button_from_row,
    decision_from_row,
    question_from_row,
)

__all__ = [
    "EPOCH",
    "RowLike",
    "action_or_withdraw",
    "actions_from_json",
    "actions_to_json",
    "actor_from_text",
    "actor_or_none",
    "approvers_from_json",
    "approvers_to_json",
    "attempt_from_row",
    "button_from_row",
    "clean",
    "decision_from_row",
    "decode_text",
    "delivery_from_row",
    "event_from_json",
    "event_kind",
    "event_to_json",
    "file_from_row",
    "form_from_json",
    "form_state_from_row",
    "form_to_json",
    "from_json",
    "from_ms",
    "from_ms_or_none",
    "given_in",
    "list_from_json",
    "marks_from_text",
    "marks_to_text",
    "ms",
    "ms_or_none",
    "object_from_json",
    "pairing_from_row",
    "place_from_row",
    "question_from_row",
    "readable",
    "storable",
    "to_json",
]
