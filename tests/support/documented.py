"""What `docs/configuration.md` says of each key, and which keys a model has."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def documented() -> list[tuple[str, Mapping[str, str]]]:
    """Return each key in its order, with what its lines say by their first word."""
    parts = re.split(r"^### `(.+)`$", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]
    return [(name, _lines(text)) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def _lines(text: str) -> Mapping[str, str]:
    lines = text.strip().split("\n\n")[0].splitlines()
    # A line of another form stands under itself, so that a test can tell.
    found = [
        re.fullmatch(r"- (\w+): (\S.*)", line) or re.fullmatch("(.*)()", line) for line in lines
    ]
    return {match[1]: match[2] for match in found if match is not None}


def fields(model: type[BaseModel], path: str) -> Iterator[str]:
    """Yield the keys of a section and of the sections in it, below `path`."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, f"{path}.{name}")
        else:
            yield f"{path}.{name}"
