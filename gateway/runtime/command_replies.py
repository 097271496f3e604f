"""Answers the commands of the control lane, as short Markdown. The table of commands is `commands`.

What each does is a reply of its own; the replies of one subject are in one module.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

from gateway.domain.ids import Actor, Place
from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.tools import ServerState
from gateway.ports import Readers, ToolHost
from gateway.runtime.access import Access
from gateway.runtime.cards import name_of, one_line
from gateway.runtime.commands import COMMANDS, find_command, nearest_command, plain_name
from gateway.runtime.server_replies import counted

logger = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[StoredInbound, CommandGiven], Awaitable[str]]
Replies: TypeAlias = Mapping[str, Reply]
"""What answers each command, by its name in the table."""


class Stop(Protocol):
    """Ends the running turn of a place."""

    async def __call__(self, place: Place, *, by: Actor) -> bool:
        """Say whether there was one to end."""
        ...


class CommandReplies:
    """Answers one command at a time, by the replies of the given subjects."""

    def __init__(self, access: Access, *subjects: Replies) -> None:
        self._access = access
        self._replies: Replies = {
            name: reply for subject in subjects for name, reply in subject.items()
        }

    async def answer(self, stored: StoredInbound, event: CommandGiven) -> str:
        """Do what the command says and return what to tell, "" when that is told otherwise.

        A refusal is an answer too.
        """
        command = find_command(event.name)
        if command is None:
            return _unknown(event.name)
        if not self._access.may_command(event.sender, command.name, place=event.place):
            logger.info("command %s refused to %s", command.name, event.sender)
            return f"You may not use /{command.name}. /whoami shows what you are here."
        reply = self._replies.get(command.name)
        return await reply(stored, event) if reply else _unknown(event.name)


class GeneralReplies:
    """Which commands there are, who one is, how the conversation does, and how to end its turn."""

    def __init__(self, readers: Readers, host: ToolHost, access: Access, stop: Stop) -> None:
        self._readers = readers
        self._host = host
        self._access = access
        self._stop = stop

    @property
    def replies(self) -> Replies:
        """What answers each of its commands."""
        return {
            "help": self._help,
            "stop": self._stopped,
            "status": self._status,
            "whoami": self._whoami,
        }

    async def _help(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        lines = [
            f"`/{item.name}{' ' + item.usage if item.usage else ''}`: {item.summary}"
            for item in COMMANDS
            if self._access.may_command(event.sender, item.name, place=event.place)
        ]
        return "\n".join(f"- {line}" for line in lines)

    async def _stopped(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        # A turn that ends says so itself.
        return "" if await self._stop(event.place, by=event.sender) else "Nothing is running here."

    async def _status(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        key = event.place.session_key
        view = await self._readers.conversations.find(key)
        last = await self._readers.inbox.last_turn(event.place)
        waiting = await self._readers.inbox.waiting(event.place)
        asked = await self._readers.questions.pending(shown_in=event.place)
        is_working = waiting > 0 or (last is not None and last[1] is None)
        state = "waiting for an answer" if asked else "working" if is_working else "idle"
        lines = [f"Conversation `{key}`", f"State: {state}"]
        if view is not None:
            lines.append(
                f"Session: {view.message_count} messages, "
                f"{view.input_tokens} tokens in, {view.output_tokens} out"
            )
        lines.append(f"Waiting: {counted(waiting, 'message')}, {counted(len(asked), 'question')}")
        servers = self._host.servers()
        ready = sum(item.state is ServerState.READY for item in servers)
        lines.append(f"MCP servers: {ready} of {len(servers)} ready")
        return "\n".join(f"- {line}" for line in lines)

    async def _whoami(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        role = self._access.role(event.sender, event.place)
        return f"You are {name_of(event.sender)} (`{event.sender}`), role **{role.value}**."


def _unknown(name: str) -> str:
    near = nearest_command(name)
    hint = f" Did you mean /{near.name}?" if near else ""
    return f"There is no command /{one_line(plain_name(name))}.{hint} /help lists them."
