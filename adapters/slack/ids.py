"""Slack's ids: what a channel, a thread and a message are called, and who is called by whom."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from gateway.domain.ids import ChatType, Place

PLATFORM: Final = "slack"

_TS: Final = re.compile(r"\d{1,12}\.\d{6}")
_CHANNEL: Final = re.compile(r"[CDGUW][A-Z0-9]+")


def is_direct(chat: str) -> bool:
    """Whether it is a chat with one person: their direct channel, or the person."""
    return chat.startswith(("D", "U", "W"))


def is_person(chat: str) -> bool:
    """Whether it names a person instead of a channel: the chat with them must be opened first."""
    return chat.startswith(("U", "W"))


def is_ts(text: str) -> bool:
    """Whether it is the id of a message."""
    return _TS.fullmatch(text) is not None


def thread_of(place: Place) -> str | None:
    """Return the thread a send goes into, None for the channel itself."""
    return place.thread if place.chat_type is ChatType.THREAD else None


def teams_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the workspaces something may be about, likeliest first.

    In a channel of two organisations the installation decides, not the home of whoever wrote.
    """
    found: list[object] = [_at(item, "team_id") for item in _list(body.get("authorizations"))]
    found += [body.get("team_id"), _at(body.get("view"), "app_installed_team_id")]
    found += [_at(body.get("team"), "id"), _at(body.get("user"), "team_id")]
    return tuple(dict.fromkeys(team for team in found if isinstance(team, str) and team))


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _at(value: object, key: str) -> object:
    return cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None


def place_named(target: str, account: str) -> Place | None:
    """Return the place an id names, with `:<thread>` behind it for a thread; None for a name."""
    chat, _, thread = target.partition(":")
    if _CHANNEL.fullmatch(chat) is None or (thread and not is_ts(thread)):
        return None
    kind = ChatType.DM if is_direct(chat) else ChatType.CHANNEL
    return Place(
        platform=PLATFORM,
        account=account,
        chat=chat,
        chat_type=ChatType.THREAD if thread else kind,
        thread=thread,
    )
