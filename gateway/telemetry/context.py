"""Which conversation, turn, server and question a log line belongs to, carried by the task."""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

FIELDS: Final = ("conversation", "turn", "server", "question")

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_ids: ContextVar[Mapping[str, str]] = ContextVar("hermes_log_ids", default=_EMPTY)


@contextmanager
def bind(
    *,
    conversation: object = None,
    turn: object = None,
    server: object = None,
    question: object = None,
) -> Generator[None]:
    """Mark every line logged inside, also by tasks started inside; None leaves what is bound."""
    given = zip(FIELDS, (conversation, turn, server, question), strict=True)
    added = {name: str(value) for name, value in given if value is not None}
    token = _ids.set({**_ids.get(), **added})
    try:
        yield
    finally:
        _ids.reset(token)


def bound() -> Mapping[str, str]:
    """Return the ids that mark a line logged now."""
    return _ids.get()


class ContextFilter(logging.Filter):
    """Puts the bound ids on each record; sits on handlers, which also see child loggers."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record."""
        record.ids = dict(bound())
        return True
