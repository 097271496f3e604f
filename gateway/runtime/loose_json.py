"""Reading JSON a model wrote, whose shape is not known. Pure."""

from collections.abc import Mapping, Sequence
from typing import cast


def object_in(value: object) -> Mapping[str, object] | None:
    """Return the value if it is a JSON object."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def list_in(value: object) -> Sequence[object]:
    """Return the value if it is a JSON list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else ()
