"""What the commands of the control lane do and answer, as short Markdown. The table is `commands`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from gateway.domain.errors import GatewayError
from gateway.domain.ids import Actor, Place
from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.tools import Reloaded, ServerState, ToolSpec
from gateway.ports import Clock, Readers, ToolHost
from gateway.runtime.access import Access
from gateway.runtime.approval_replies import ApprovalReplies
from gateway.runtime.cards import name_of, one_line
from gateway.runtime.chat_logins import ChatLogins
from gateway.runtime.commands import COMMANDS, find_command, nearest_command, plain_name
from gateway.runtime.homes import Homes
from gateway.runtime.server_replies import counted, server_detail, server_line
from gateway.runtime.toolsets import narrowed

logger = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[StoredInbound, CommandGiven], Awaitable[str]]

RELOAD_SECONDS: Final = 30.0
MAX_TOOLS: Final = 40
MAX_HITS: Final = 10
MAX_SUMMARY: Final = 120
MAX_QUERY: Final = 500


class Stop(Protocol):
    """Ends the running turn of a place."""

    async def __call__(self, place: Place, *, by: Actor) -> bool:
        """Say whether there was one to end."""
        ...


class CommandReplies:
    """Answers one command at a time."""

    def __init__(
        self,
        readers: Readers,
        host: ToolHost,
        access: Access,
        approvals: ApprovalReplies,
        stop: Stop,
        clock: Clock,
        logins: ChatLogins,
        homes: Homes,
    ) -> None:
        self._readers = readers
        self._host = host
        self._access = access
        self._stop = stop
        self._clock = clock
        self._logins = logins
        self._replies: Mapping[str, Reply] = {
            "help": self._help,
            "new": self._new,
            "stop": self._stopped,
            "status": self._status,
            "whoami": self._whoami,
            "tools": self._tools,
            "mcp": self._mcp,
            "approve": approvals.approve,
            "deny": approvals.deny,
            "approvals": approvals.waiting,
            "login": self._login,
            "sethome": homes.choose,
            "reload-mcp": self._reload,
        }

    @property
    def names(self) -> frozenset[str]:
        """The commands this answers."""
        return frozenset(self._replies)

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

    async def _help(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        lines = [
            f"`/{item.name}{' ' + item.usage if item.usage else ''}`: {item.summary}"
            for item in COMMANDS
            if self._access.may_command(event.sender, item.name, place=event.place)
        ]
        return "\n".join(f"- {line}" for line in lines)

    async def _new(self, stored: StoredInbound, event: CommandGiven) -> str:
        view = await self._readers.conversations.find(event.place.session_key)
        del stored
        if view is None:
            return "A new session has started."
        sessions = await self._readers.conversations.sessions(view.id, limit=1)
        number = f" (number {sessions[0].n})" if sessions else ""
        return f"A new session has started{number}. Earlier ones stay readable."

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

    async def _tools(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        query = event.argument.strip()[:MAX_QUERY]
        host = narrowed(self._host, event.toolsets)
        if query:
            found = [hit.spec for hit in host.search(query, limit=MAX_HITS)]
        else:
            found = sorted(host.tools(), key=lambda spec: (spec.server, spec.name))
        seen = [spec for spec in found if self._may_use(spec, event.sender, event.place)]
        if not seen:
            return (
                f"No tool matches {one_line(query)}." if query else "There are no tools yet. /mcp"
            )
        lines = [f"`{spec.alias}`: {_summary(spec)}" for spec in seen[:MAX_TOOLS]]
        more = len(seen) - MAX_TOOLS
        if more > 0:
            lines.append(f"{more} more: narrow it with `/tools QUERY`")
        return "\n".join(f"- {line}" for line in lines)

    def _may_use(self, spec: ToolSpec, actor: Actor, place: Place) -> bool:
        return self._access.may_use(actor, alias=spec.alias, server=spec.server, place=place)

    async def _mcp(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        servers = self._host.servers()
        wanted = event.argument.strip()
        if not wanted:
            lines = [server_line(item) for item in servers]
            return "\n".join(f"- {line}" for line in lines) or "No MCP server is configured."
        found = next((item for item in servers if item.name == wanted), None)
        if found is None:
            return _no_server(wanted, [item.name for item in servers])
        return server_detail(found)

    async def _login(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        return await self._logins.answer(event.place, event.sender, event.argument.strip())

    async def _reload(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        name = event.argument.strip() or None
        known = [item.name for item in self._host.servers()]
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(RELOAD_SECONDS):
                reloaded = await self._host.reload(name)
                return _reloaded(reloaded, seconds=self._clock.monotonic() - began)
        except TimeoutError:
            return f"Not done after {RELOAD_SECONDS:.0f} s; /mcp shows how far it is."
        except GatewayError as error:
            logger.warning("reload failed: %s", error)
            if name is not None and name not in known:
                return _no_server(name, known)
            return f"Nothing was reloaded: {one_line(error.public_message, MAX_QUERY)}"


def _unknown(name: str) -> str:
    near = nearest_command(name)
    hint = f" Did you mean /{near.name}?" if near else ""
    return f"There is no command /{one_line(plain_name(name))}.{hint} /help lists them."


def _no_server(name: str, known: Sequence[str]) -> str:
    listed = ", ".join(one_line(item) for item in known)
    return f"There is no MCP server {one_line(name)}. Known: {listed or 'none'}."


def _summary(spec: ToolSpec) -> str:
    return one_line(spec.title or spec.description or spec.name, MAX_SUMMARY)


def _reloaded(reloaded: Reloaded, *, seconds: float) -> str:
    parked = [f"{name} ({one_line(reason, MAX_SUMMARY)})" for name, reason in reloaded.parked]
    lists = {
        "added": reloaded.added,
        "removed": reloaded.removed,
        "changed": reloaded.changed,
        "parked": parked,
    }
    said = [f"{word}: {', '.join(names)}" for word, names in lists.items() if names]
    return (
        f"Reloaded in {seconds:.1f} s. "
        + ("; ".join(said) if said else "Nothing has changed")
        + "."
    )
