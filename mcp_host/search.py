"""Finds tools by words: an in-memory full-text index, ranked by BM25 with stemming.

Derived from the registered tools and thrown away with them; nothing is kept on disk.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from gateway.domain.tools import ToolHit, ToolSpec

DEFAULT_LIMIT: Final = 5

_MAX_QUERY: Final = 1_000
_MAX_WORDS: Final = 16
_SHORTEST_PREFIX: Final = 3
_COMMON: Final = 500
"""Tools with a word from which on it costs more to score than it tells."""

_MAX_COMMON: Final = 2
_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Words of a request that say nothing about the tool it needs.
_FILLER: Final = re.compile(
    "a|an|and|are|at|be|by|can|could|do|for|from|i|in|is|it|its|me|my|of|on|or|our|please|that|the"
    "|their|this|to|us|want|we|with|would|you|your"
)
_CREATE: Final = """
CREATE VIRTUAL TABLE tool USING fts5(
  name, title, description, server, arguments,
  content='', tokenize='porter unicode61 remove_diacritics 2'
)
"""
_INSERT: Final = (
    "INSERT INTO tool(rowid, name, title, description, server, arguments) VALUES (?, ?, ?, ?, ?, ?)"
)
_COUNT: Final = "SELECT count(*) FROM tool WHERE tool MATCH ?"
_SEARCH: Final = """
SELECT rowid, -bm25(tool, 10.0, 6.0, 2.0, 4.0, 1.0) AS score
FROM tool WHERE tool MATCH ? ORDER BY score DESC, rowid LIMIT ?
"""


class ToolIndex:
    """The registered tools, searchable; close it when they change."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        # Equal scores keep the order of the aliases, whatever order the servers answered in.
        self._specs: Sequence[ToolSpec] = sorted(specs, key=lambda spec: spec.alias)
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        with self._database:
            self._database.execute(_CREATE)
            self._database.executemany(
                _INSERT, ((row, *_columns(spec)) for row, spec in enumerate(self._specs))
            )

    def search(self, query: str, *, limit: int = DEFAULT_LIMIT) -> tuple[ToolHit, ...]:
        """Return the best matches for any text at all; `limit` is at least 1."""
        words = _words_of(query)
        if not words:
            return ()
        limit = max(1, min(limit, len(self._specs)))
        hits = self._match(self._expression(words), limit)
        if hits:
            return hits
        starts = [f'"{word}"*' for word in words if len(word) >= _SHORTEST_PREFIX]
        return self._match(" OR ".join(starts), limit) if starts else ()

    def search_all(
        self, queries: Iterable[str], *, limit: int = DEFAULT_LIMIT
    ) -> tuple[tuple[ToolHit, ...], ...]:
        """Answer several queries, in their order."""
        return tuple(self.search(query, limit=limit) for query in queries)

    def close(self) -> None:
        """Free the index; it answers nothing afterwards."""
        self._database.close()

    def _expression(self, words: Sequence[str]) -> str:
        """Score only the tools that have a telling word; common ones then rank among those."""
        rows = {word: self._count(word) for word in words} if len(self._specs) > _COMMON else {}
        common = [word for word in words if rows.get(word, 0) > _COMMON]
        telling = [word for word in words if 0 < rows.get(word, 1) <= _COMMON]
        if not common:
            return _any_of(words)
        if not telling:
            return _any_of(sorted(common, key=lambda word: rows[word])[:_MAX_COMMON])
        return f"({_any_of(telling)}) OR (({_any_of(telling)}) AND ({_any_of(common)}))"

    def _count(self, word: str) -> int:
        found = cast("tuple[int]", self._database.execute(_COUNT, (_any_of([word]),)).fetchone())
        return found[0]

    def _match(self, expression: str, limit: int) -> tuple[ToolHit, ...]:
        rows = cast(
            "list[tuple[int, float]]",
            self._database.execute(_SEARCH, (expression, limit)).fetchall(),
        )
        return tuple(ToolHit(spec=self._specs[row], score=score) for row, score in rows)


def _any_of(words: Iterable[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def _columns(spec: ToolSpec) -> tuple[str, ...]:
    return tuple(
        _storable(text)
        for text in (
            f"{spec.name} {_HUMP.sub(' ', spec.name)}",
            spec.title,
            spec.description,
            spec.server,
            " ".join(_arguments(spec.input_schema)),
        )
    )


def _arguments(schema: Mapping[str, object]) -> Iterable[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, about in cast("Mapping[str, object]", properties).items():
        yield _HUMP.sub(" ", name)
        if isinstance(about, Mapping):
            description = cast("Mapping[str, object]", about).get("description")
            if isinstance(description, str):
                yield description


def _words_of(query: str) -> tuple[str, ...]:
    text = unicodedata.normalize("NFC", _storable(query[:_MAX_QUERY]))
    found = _WORD.findall(f"{text} {_HUMP.sub(' ', text)}")
    words = tuple(dict.fromkeys(word.lower() for word in found))
    telling = tuple(word for word in words if not _FILLER.fullmatch(word))
    return (telling or words)[:_MAX_WORDS]


def _storable(text: str) -> str:
    """Replace lone surrogates, which SQLite's UTF-8 cannot hold, and NUL, which ends its text."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
