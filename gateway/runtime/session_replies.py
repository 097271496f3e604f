"""What the commands about a conversation's sessions answer: /new, /title, /sessions, /resume, /usage.

A session is opened, or gone back to, where its command is accepted, so that order decides what belongs
to it; here people are told.
"""

from typing import Final, Protocol

from gateway.domain.conversation import SessionView
from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.upkeep import SetTitle
from gateway.ports import Conversations
from gateway.runtime.cards import one_line
from gateway.runtime.command_replies import Replies
from gateway.runtime.commands import session_number
from gateway.runtime.server_replies import counted

MAX_LISTED: Final = 20
MAX_TITLE: Final = 100
NONE_YET: Final = "Nothing was said here yet."


class TitleStore(Protocol):
    """Where titles are kept."""

    async def set_title(self, title: SetTitle) -> None: ...


class SessionReplies:
    """Speaks of the session a command was given in, and of the others of its conversation."""

    def __init__(self, conversations: Conversations, store: TitleStore) -> None:
        self._conversations = conversations
        self._store = store

    @property
    def replies(self) -> Replies:
        """What answers each of its commands."""
        return {
            "new": self._new,
            "title": self._title,
            "sessions": self._sessions,
            "resume": self._resume,
            "usage": self._usage,
        }

    async def _new(self, stored: StoredInbound, event: CommandGiven) -> str:
        del event
        sessions = await self._conversations.sessions(stored.conversation, limit=1)
        number = f" (number {sessions[0].n})" if sessions else ""
        return f"A new session has started{number}. Earlier ones stay readable: /sessions"

    async def _title(self, stored: StoredInbound, event: CommandGiven) -> str:
        session = await self._conversations.session(stored.session)
        if session is None:
            return NONE_YET
        title = " ".join(event.argument.split())
        if not title:
            if not session.title:
                return f"Session {session.n} has no title; `/title TEXT` gives it one."
            return f"Session {session.n} is called “{one_line(session.title)}”."
        if len(title) > MAX_TITLE:
            return f"A title has at most {MAX_TITLE} characters; this one has {len(title)}."
        await self._store.set_title(SetTitle(session=session.id, title=title))
        return f"Session {session.n} is called “{one_line(title)}” now."

    async def _sessions(self, stored: StoredInbound, event: CommandGiven) -> str:
        del event
        found = await self._conversations.sessions(stored.conversation, limit=MAX_LISTED)
        if not found:
            return NONE_YET
        lines = [_line(item, is_current=item.id == stored.session) for item in found]
        # They are numbered from 1 and none is ever deleted.
        older = found[-1].n - 1
        if older:
            lines.append(f"{older} older: `/resume N` takes their numbers too")
        return "\n".join(f"- {line}" for line in lines)

    async def _resume(self, stored: StoredInbound, event: CommandGiven) -> str:
        number = session_number(event.argument)
        if number is None:
            return "Usage: `/resume N` goes on with session N; /sessions lists them."
        session = await self._conversations.numbered(stored.conversation, number)
        if session is None:
            return f"There is no session {number} here; /sessions lists them."
        again = "is the one you are in" if session.id == stored.session else "goes on"
        return f"Session {number} {again}: {_about(session)}."

    async def _usage(self, stored: StoredInbound, event: CommandGiven) -> str:
        del event
        session = await self._conversations.session(stored.session)
        spent = await self._conversations.spent(stored.conversation)
        if session is None:
            return NONE_YET
        return (
            f"- Session {session.n}: {_tokens(session.input_tokens, session.output_tokens)}\n"
            f"- This conversation, {counted(spent.sessions, 'session')}: "
            f"{_tokens(spent.input_tokens, spent.output_tokens)}"
        )


def _line(session: SessionView, *, is_current: bool) -> str:
    return f"**{session.n}**{' (this one)' if is_current else ''}: {_about(session)}"


def _about(session: SessionView) -> str:
    title = f"“{one_line(session.title)}”" if session.title else "no title"
    begun = session.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
    return f"{title}, {counted(session.message_count, 'message')}, begun {begun}"


def _tokens(read: int, written: int) -> str:
    return f"{read:,} tokens in, {written:,} out"
