"""What Slack tells us becomes one event, or nothing. Pure: what has to be looked up is handed in."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from adapters.slack.attachments import attachments_of
from adapters.slack.buttons import token_in
from adapters.slack.ids import PLATFORM, is_direct, is_ts
from adapters.slack.words import mentions, plain, text_of, without_call
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    InboundEvent,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)

Json = Mapping[str, Any]

_COMMAND: Final = re.compile(r"([/!])([A-Za-z][A-Za-z0-9_-]{0,63})(?:\s+(.*))?", re.DOTALL)
_SAID: Final = frozenset(
    ("", "bot_message", "file_share", "me_message", "reply_broadcast", "thread_broadcast")
)
"""Subtypes of messages that somebody wrote; the others tell what happened to a channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Us:
    """Who reads in which workspace; "" is what is not known of us yet, and then nobody calls us.

    `strict`: a reply in a thread of ours does not call us by itself. `commands` are the names that
    may stand behind a `!`, since Slack keeps what begins with a `/` to itself.
    """

    team: str
    user: str
    bot: str = ""
    account: str = ""
    sessions_per_user: bool = True
    reply_in_thread: bool = True
    strict: bool = False
    commands: frozenset[str] = frozenset()

    def dedupe(self, *parts: str) -> str:
        """Return what a redelivery has in common with the first delivery."""
        return ":".join((PLATFORM, self.account or self.team, *parts))


def author_of(body: Json) -> str:
    """Return the id of whoever did something, "" when nobody is told."""
    event = cast("Json", body.get("event") or {})
    changed = cast("Json", event.get("message") or event.get("previous_message") or {})
    told = cast("Json", body.get("user") or {}).get("id")
    return str(event.get("user") or changed.get("user") or body.get("user_id") or told or "")


def event_of(
    body: Json, us: Us, *, now: datetime, name: Callable[[str], str] = str
) -> InboundEvent | None:
    """Return the event of an Events API body, a press or a command; `name` is how people are known."""
    if "event" in body:
        return _event(cast("Json", body["event"]), us, name)
    if body.get("type") == "block_actions":
        return _press(body, us, now, name)
    if "command" in body:
        return _slash(body, us, now, name)
    return None


# --- messages -----------------------------------------------------------------------


def _event(event: Json, us: Us, name: Callable[[str], str]) -> InboundEvent | None:
    if event.get("type") not in ("message", "app_mention"):
        return None
    channel, subtype = str(event.get("channel") or ""), str(event.get("subtype") or "")
    if subtype == "message_changed":
        return _edit(event, channel, us, name)
    if subtype == "message_deleted":
        return _deletion(event, channel, us, name)
    if subtype not in _SAID or not channel or not is_ts(str(event.get("ts"))):
        return None
    sender = _sender(event, us, name)
    if sender is None:
        return None
    calls = _calls(event, channel, us)
    said = without_call(text_of(event), us.user)
    place = _place(event, channel, us, sender, calls=calls)
    common: dict[str, Any] = {
        "place": place,
        "native_id": str(event["ts"]),
        # A mention comes twice, under two event ids; the message is one.
        "dedupe": us.dedupe(channel, str(event["ts"])),
        "sender": sender,
        "sent_at": _time(str(event["ts"])),
        "mentions_us": calls,
    }
    command = _COMMAND.fullmatch(plain(said).strip())
    if command is not None and (command[1] == "/" or _name(command[2]) in us.commands):
        argument = (command[3] or "").strip()
        return CommandGiven(name=_name(command[2]), argument=argument, **common)
    files = attachments_of(event)
    text = plain(said).strip()
    if not text and not files and not calls:
        return None
    return InboundMessage(text=text, attachments=files, **common)


def _edit(event: Json, channel: str, us: Us, name: Callable[[str], str]) -> InboundEvent | None:
    message = cast("Json", event.get("message") or {})
    before = cast("Json", event.get("previous_message") or {})
    sender = _sender(message, us, name)
    # A link that got its preview is "changed" as well.
    if sender is None or text_of(message) == text_of(before):
        return None
    calls = _calls(message, channel, us) or _calls(before, channel, us)
    ts, at = str(message.get("ts")), str(event.get("ts") or event.get("event_ts"))
    text = plain(without_call(text_of(message), us.user)).strip()
    if not text or not is_ts(ts):
        return None
    return MessageEdited(
        place=_place(message, channel, us, sender, calls=calls),
        native_id=f"{ts}.{at}",
        dedupe=us.dedupe(channel, ts, "edited", at),
        sender=sender,
        sent_at=_time(at) if is_ts(at) else _time(ts),
        edited=ts,
        text=text,
    )


def _deletion(event: Json, channel: str, us: Us, name: Callable[[str], str]) -> InboundEvent | None:
    before = cast("Json", event.get("previous_message") or {})
    sender, ts = _sender(before, us, name), str(event.get("deleted_ts"))
    if sender is None or not is_ts(ts):
        return None
    return MessageDeleted(
        place=_place(before, channel, us, sender, calls=_calls(before, channel, us)),
        native_id=f"{ts}.deleted",
        dedupe=us.dedupe(channel, ts, "deleted"),
        sender=sender,
        sent_at=_time(ts),
        deleted=ts,
    )


def _calls(message: Json, channel: str, us: Us) -> bool:
    """Whether a message is for us: by name, in our own chat, or below something we began."""
    if is_direct(channel) or mentions(message, us.user):
        return True
    if message.get("type") == "app_mention" and us.user:
        return True
    return bool(us.user) and message.get("parent_user_id") == us.user and not us.strict


def _name(text: str) -> str:
    return text.lower().replace("_", "-")


def _time(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


# --- presses and commands -------------------------------------------------------------


def _press(body: Json, us: Us, now: datetime, name: Callable[[str], str]) -> ButtonPressed | None:
    actions = cast("Sequence[Json]", body.get("actions") or ())
    container = cast("Json", body.get("container") or {})
    message = cast("Json", body.get("message") or {})
    channel = str(
        container.get("channel_id") or cast("Json", body.get("channel") or {}).get("id") or ""
    )
    sender = person_of(body, name)
    if not actions or not channel or sender is None:
        return None
    shown = {"ts": container.get("message_ts") or message.get("ts")}
    shown["thread_ts"] = container.get("thread_ts") or message.get("thread_ts")
    pressed = actions[0]
    number = str(body.get("trigger_id") or pressed.get("action_ts") or "")
    return ButtonPressed(
        place=_place(shown, channel, us, sender, calls=False),
        native_id=number,
        dedupe=us.dedupe(channel, str(shown["ts"]), sender.id, number),
        sender=sender,
        sent_at=now,
        token=token_in(str(pressed.get("value") or "")),
        interaction=sender.id,
    )


def _slash(body: Json, us: Us, now: datetime, name: Callable[[str], str]) -> CommandGiven | None:
    channel, user = str(body.get("channel_id") or ""), str(body.get("user_id") or "")
    if not channel or not user:
        return None
    sender = Actor(platform=PLATFORM, id=user, name=name(user))
    given, _, argument = str(body.get("text") or "").strip().partition(" ")
    number = str(body.get("trigger_id") or "")
    return CommandGiven(
        place=_place({}, channel, us, sender, calls=False),
        native_id=number,
        dedupe=us.dedupe(channel, "command", number),
        sender=sender,
        sent_at=now,
        name=_name(given.lstrip("/!")) or "help",
        argument=plain(argument).strip(),
        mentions_us=True,
    )


# --- who and where ------------------------------------------------------------------


def person_of(body: Json, name: Callable[[str], str]) -> Actor | None:
    """Return who pressed or submitted something."""
    user = cast("Json", body.get("user") or {})
    number = str(user.get("id") or "")
    if not number:
        return None
    known = name(number)
    return Actor(
        platform=PLATFORM,
        id=number,
        name=known if known != number else str(user.get("name") or user.get("username") or number),
    )


def _sender(message: Json, us: Us, name: Callable[[str], str]) -> Actor | None:
    """Return who wrote; None for ourselves, and for what nobody wrote."""
    user, bot = str(message.get("user") or ""), str(message.get("bot_id") or "")
    if (us.user and user == us.user) or (us.bot and bot == us.bot):
        return None
    if not (user or bot):
        return None
    return Actor(
        platform=PLATFORM, id=user or bot, name=name(user) if user else "", is_bot=bool(bot)
    )


def _place(message: Json, channel: str, us: Us, sender: Actor, *, calls: bool) -> Place:
    """Return the conversation: threads are shared, a plain channel is divided by participant."""
    ts, thread = str(message.get("ts") or ""), str(message.get("thread_ts") or "")
    if thread == ts or not is_ts(thread):
        thread = ""
    if not thread and calls and us.reply_in_thread and not is_direct(channel) and is_ts(ts):
        thread = ts
    kind = _kind(message, channel, thread)
    divided = kind in (ChatType.GROUP, ChatType.CHANNEL) and us.sessions_per_user
    return Place(
        platform=PLATFORM,
        account=us.account,
        chat=channel,
        chat_type=kind,
        thread=thread,
        participant=sender.id if divided else "",
    )


def _kind(message: Json, channel: str, thread: str) -> ChatType:
    if thread:
        return ChatType.THREAD
    if is_direct(channel):
        return ChatType.DM
    return ChatType.GROUP if message.get("channel_type") == "mpim" else ChatType.CHANNEL
