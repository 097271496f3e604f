"""Writes rows straight into a store's file, for tests of what reads them."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.domain.ids import ChatType, Place
from store.engine import open_connection
from store.migrations import bring_up

DM = Place(platform="telegram", chat="100", chat_type=ChatType.DM)


class Rows:
    """Inserts with defaults; what a test does not name does not matter to it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._number = count(1)

    def insert(self, table: str, **values: object) -> int:
        """Insert one row and return its rowid."""
        names = ", ".join(values)
        marks = ", ".join("?" for _ in values)
        # The table and column names are the test's own.
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
        identifier = self.connection.execute(statement, tuple(values.values())).lastrowid
        assert identifier is not None
        return identifier

    def update(self, table: str, identifier: int, **values: object) -> None:
        """Change one row by its id."""
        sets = ", ".join(f"{name} = ?" for name in values)
        # The table and column names are the test's own.
        statement = f"UPDATE {table} SET {sets} WHERE id = ?"  # noqa: S608
        self.connection.execute(statement, (*values.values(), identifier))

    def conversation(self, place: Place = DM, **values: object) -> int:
        """Insert a conversation with its chat and a first session."""
        chat = self._chat(place, title=values.pop("chat_title", ""))
        conversation = self.insert(
            "conversation",
            **{
                "chat_id": chat,
                "platform": place.platform,
                "account": place.account,
                "chat_type": place.chat_type.value,
                "chat_key": place.chat,
                "thread_key": place.thread,
                "participant": place.participant,
                "session_key": place.session_key,
                "search_text": place.session_key.casefold(),
                "created_at": 0,
                "last_at": next(self._number),
                **values,
            },
        )
        session = self.session(conversation)
        self.update("conversation", conversation, current_session_id=session)
        return conversation

    def session(self, conversation: int, **values: object) -> int:
        """Insert a further session of a conversation."""
        n = self._one("SELECT count(*) + 1 FROM session WHERE conversation_id = ?", conversation)
        row = {"conversation_id": conversation, "n": n, "started_at": 0, **values}
        return self.insert("session", **row)

    def message(self, conversation: int, body: str = "hello", **values: object) -> int:
        """Insert a message of the current session, and name it the last one."""
        session = self._one(
            "SELECT current_session_id FROM conversation WHERE id = ?", conversation
        )
        message = self.insert(
            "message",
            **{
                "conversation_id": conversation,
                "session_id": session,
                "seq": next(self._number),
                "role": "user",
                "author": "telegram:7",
                "author_name": "Ada",
                "body": body,
                "created_at": 1_000,
                **values,
            },
        )
        self.update("conversation", conversation, last_message_id=message)
        return message

    def event(self, kind: str, conversation: int, **values: object) -> int:
        """Insert an event of the stream; its id is the cursor."""
        return self.insert("event", kind=kind, conversation_id=conversation, at=0, **values)

    def inbound(self, conversation: int, payload: str, **values: object) -> int:
        """Insert an accepted event."""
        return self.insert(
            "inbound",
            **{
                "dedupe": f"d{next(self._number)}",
                "conversation_id": conversation,
                "kind": "command",
                "lane": "control",
                "actor": "telegram:7",
                "payload": payload,
                "sent_at": 0,
                "received_at": 0,
                **values,
            },
        )

    def question(self, conversation: int, **values: object) -> str:
        """Insert a pending question and return its id."""
        number = next(self._number)
        identifier = str(values.pop("id", f"{number:04}".translate(_BASE32) + "a" * 22))
        session = self._one(
            "SELECT current_session_id FROM conversation WHERE id = ?", conversation
        )
        self.insert(
            "question",
            **{
                "id": identifier,
                "short": identifier[:4],
                "kind": "tool_call",
                "conversation_id": conversation,
                "shown_in": conversation,
                "session_id": session,
                "requester": "telegram:7",
                "approvers": '{"ids":[],"policy":"requester"}',
                "actions": '["allow-once","deny"]',
                "server": "demo",
                "tool": "add",
                "args": '{"a":1}',
                "args_sha": "sha",
                "body": "Run add?",
                "state": "pending",
                "created_at": number,
                "expires_at": 2**45,
                **values,
            },
        )
        return identifier

    def delivery(self, conversation: int, **values: object) -> int:
        """Insert a text that is ready to be sent."""
        number = next(self._number)
        chat = self._one("SELECT chat_id FROM conversation WHERE id = ?", conversation)
        return self.insert(
            "delivery",
            **{
                "conversation_id": conversation,
                "chat_id": chat,
                "ord": number,
                "kind": "text",
                "origin": "turn",
                "group_key": f"g{number}",
                "idem_key": f"g{number}:0",
                "body": "hello",
                "next_at": 0,
                "created_at": 0,
                **values,
            },
        )

    def channel(self, name: str, chat: str, **values: object) -> int:
        """Insert a place of the directory."""
        folded = name.removeprefix("#").removeprefix("@").casefold()
        return self.insert(
            "directory",
            **{
                "platform": "slack",
                "chat_key": chat,
                "chat_type": "channel",
                "name": name,
                "name_folded": folded,
                "source": "seen",
                "seen_at": 0,
                **values,
            },
        )

    def _chat(self, place: Place, *, title: object) -> int:
        keys = (place.platform, place.account, place.chat)
        found = self.connection.execute(
            "SELECT id FROM chat WHERE platform = ? AND account = ? AND chat_key = ?", keys
        ).fetchone()
        if found is not None:
            return found[0]
        kind = place.chat_type if place.chat_type in ("dm", "channel") else "group"
        return self.insert(
            "chat",
            platform=place.platform,
            account=place.account,
            chat_key=place.chat,
            kind=kind,
            title=title,
            created_at=0,
        )

    def _one(self, statement: str, *values: object) -> int:
        return self.connection.execute(statement, values).fetchone()[0]


_BASE32 = str.maketrans("0189", "klmn")


@contextmanager
def open_rows(path: Path) -> Generator[Rows]:
    """Create a store's file as a migration leaves it, and keep a writing connection to it open."""
    path.write_bytes(_empty_store())
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield Rows(connection)
    finally:
        connection.close()


@cache
def _empty_store() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        connection = open_connection(path)
        try:
            bring_up(connection)
        finally:
            connection.close()
        return path.read_bytes()
