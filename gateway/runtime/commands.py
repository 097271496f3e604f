"""The one table of slash commands: `/help`, completion and every platform's menu read it.

What they do is in `command_replies` and beside it (control lane), `assignments` and `intake`
(turn lane).
"""

import difflib
from dataclasses import dataclass
from typing import Final

from gateway.domain.operations.inbound import Lane
from gateway.runtime.config import PersonRole

QUEUE: Final = "queue"
RETRY: Final = "retry"
UNDO: Final = "undo"
SUGGESTION_CUTOFF: Final = 0.4
MAX_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One slash command; `usage` is what follows its name, `role` the least that may give it."""

    name: str
    summary: str
    usage: str = ""
    aliases: tuple[str, ...] = ()
    lane: Lane = Lane.CONTROL
    role: PersonRole = PersonRole.USER
    new_session: bool = False
    """Giving it opens a session, in the order of arrival."""

    resumes: bool = False
    """Giving it with a number goes back to that session, likewise."""


COMMANDS: Final = (
    Command(name="help", summary="Show the commands", aliases=("start", "commands")),
    Command(name="new", summary="Start a new session", aliases=("reset",), new_session=True),
    Command(name="stop", summary="End the running turn, its calls and its questions"),
    Command(name="status", summary="Show the conversation, its session and what waits"),
    Command(name="whoami", summary="Show who you are to this gateway", aliases=("id",)),
    Command(name="model", summary="Show which model answers, or choose one", usage="[NAME]"),
    Command(name="tools", summary="List the tools, or find some", usage="[query]"),
    Command(name="mcp", summary="Show the MCP servers, or one in detail", usage="[NAME]"),
    Command(name="call", summary="Call a tool directly", usage="TOOL {json}", lane=Lane.TURN),
    Command(name=QUEUE, summary="Answer TEXT in a turn of its own", usage="TEXT", lane=Lane.TURN),
    Command(name=RETRY, summary="Answer the last message again", lane=Lane.TURN),
    Command(name=UNDO, summary="Forget the last message and its answer", lane=Lane.TURN),
    Command(name="title", summary="Show or set the title of the session", usage="[TEXT]"),
    Command(name="sessions", summary="List the sessions of this conversation"),
    Command(name="resume", summary="Go on with an earlier session", usage="N", resumes=True),
    Command(name="usage", summary="Show the tokens of the session and the conversation"),
    Command(
        name="approve",
        summary="Allow what a card asks",
        usage="ID [session|always]",
        aliases=("allow",),
    ),
    Command(name="deny", summary="Deny what a card asks", usage="ID [reason]"),
    Command(name="approvals", summary="List what waits for a decision here"),
    Command(
        name="login",
        summary="Sign in to an MCP server",
        usage="NAME",
        role=PersonRole.ADMIN,
    ),
    Command(
        name="sethome",
        summary="Make this chat the home channel",
        role=PersonRole.ADMIN,
    ),
    Command(
        name="reload-mcp",
        summary="Apply the configuration of the MCP servers",
        usage="[NAME]",
        role=PersonRole.ADMIN,
    ),
)
"""In the order people see them."""

_BY_NAME: Final = {name: item for item in COMMANDS for name in (item.name, *item.aliases)}


def find_command(name: str) -> Command | None:
    """Find by name or alias, in any case; `_` is understood for `-`, a leading `/` is dropped."""
    return _BY_NAME.get(plain_name(name))


def plain_name(name: str) -> str:
    """Return a name as the table writes it."""
    return name.removeprefix("/").casefold().replace("_", "-")


def session_number(argument: str) -> int | None:
    """Read the number of a session as people write it, None when it is none."""
    text = argument.strip().lstrip("#")
    is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if is_number else None


def nearest_command(name: str) -> Command | None:
    """Return the command somebody probably meant, None when nothing is near."""
    found = difflib.get_close_matches(plain_name(name), _BY_NAME, n=1, cutoff=SUGGESTION_CUTOFF)
    return _BY_NAME[found[0]] if found else None
