"""The rows of a place: its chat, its conversation and the session people talk in."""

from gateway.domain.ids import Actor, ChatType, ConversationId, Place
from gateway.domain.operations.inbound import MigrateChat
from store.codec import place_from_row, storable
from store.sql import places as sql
from store.work import Known, Work

_CHAT_KINDS = {
    ChatType.DM: "dm",
    ChatType.GROUP: "group",
    ChatType.CHANNEL: "channel",
    ChatType.THREAD: "channel",
    ChatType.TOPIC: "group",
}


def rows_of(work: Work, place: Place, *, sender: Actor | None = None) -> Known:
    """Return the rows of a place, made when it is new; a person's own place carries their name."""
    known = work.known(place)
    if known is None:
        known = _find(work, place) or _make(work, place)
        work.remember(place, known)
    if sender is not None and sender.name and sender.name != known.user_name and _is_own(place):
        known = _name(work, place, known, sender.name)
        work.remember(place, known)
    return known


def open_session(work: Work, conversation: ConversationId) -> int:
    """Start the conversation's next session; what is accepted from now on belongs to it."""
    work.run(sql.END_SESSION, {"conv": conversation, "now": work.now})
    session: int = work.value(sql.SESSION, {"conv": conversation, "now": work.now})
    work.run(sql.CURRENT, {"conv": conversation, "session": session})
    return session


def resume_session(work: Work, conversation: ConversationId, n: int) -> None:
    """Go on with an earlier session of the conversation; without one of that number, change nothing."""
    values = {"conv": conversation, "n": n, "now": work.now}
    found = work.one(sql.SESSION_OF_NUMBER, values)
    if found is None:
        return
    work.run(sql.END_SESSION, values)
    work.run(sql.REOPEN, {"session": found["id"]})
    work.run(sql.CURRENT, {"conv": conversation, "session": found["id"]})


def current_session(work: Work, conversation: ConversationId) -> int:
    """Return the session people talk in."""
    session: int = work.value(sql.CURRENT_SESSION, {"conv": conversation})
    return session


def see(work: Work, place: Place, *, name: str = "") -> None:
    """Note a place as one we may send to; without a name it is called by its chat."""
    shown = name or storable(place.chat)
    work.run(
        sql.SEEN,
        {
            "platform": storable(place.platform),
            "account": storable(place.account),
            "chat": storable(place.chat),
            "thread": storable(place.thread),
            "chat_type": place.chat_type.value,
            "name": shown,
            "name_folded": shown.lstrip("#@").casefold(),
            "named": bool(name),
            "now": work.now,
        },
    )


def migrate_chat(work: Work, migrate: MigrateChat) -> int:
    """Move a chat's conversations to its new id; a key that is taken there stays where it is."""
    keys = {
        "platform": storable(migrate.platform),
        "account": storable(migrate.account),
        "old": storable(migrate.old),
        "new": storable(migrate.new),
    }
    old = work.one(sql.OLD_CHAT, keys)
    if old is None:
        return 0
    chat: int = work.value(
        sql.CHAT,
        {
            **keys,
            "chat": keys["new"],
            "kind": old["kind"],
            "title": old["title"],
            "now": work.now,
        },
    )
    work.run(sql.LEAVE_CHAT, {"chat_id": chat, "old_id": old["id"]})
    moved = sum(
        _move(work, row["id"], place_from_row(row), chat, keys)
        for row in work.all(sql.OF_CHAT, keys)
    )
    work.run(sql.MOVE_DIRECTORY, keys)
    work.run(sql.MOVE_HOME, keys)
    work.moved()
    return moved


def _move(work: Work, conversation: int, place: Place, chat: int, keys: dict[str, str]) -> bool:
    moved = Place(
        platform=place.platform,
        account=place.account,
        chat=keys["new"],
        chat_type=place.chat_type,
        thread=place.thread,
        participant=place.participant,
    )
    if work.one(sql.FIND, {"session_key": moved.session_key}) is not None:
        return False
    work.run(sql.ALIAS, {"old_key": place.session_key, "conv": conversation})
    work.run(
        sql.MOVE,
        {
            "conv": conversation,
            "chat_id": chat,
            "new": keys["new"],
            "session_key": moved.session_key,
            "old_text": place.session_key.casefold(),
            "new_text": moved.session_key.casefold(),
        },
    )
    work.run(sql.MOVE_DELIVERIES, {"conv": conversation, "chat_id": chat})
    return True


def _find(work: Work, place: Place) -> Known | None:
    key = {"session_key": storable(place.session_key)}
    row = work.one(sql.FIND, key) or work.one(sql.FIND_ALIAS, key)
    if row is None:
        return None
    return Known(
        conversation=ConversationId(row["id"]), chat=row["chat_id"], user_name=row["user_name"]
    )


def _make(work: Work, place: Place) -> Known:
    values: dict[str, object] = {
        "platform": storable(place.platform),
        "account": storable(place.account),
        "chat": storable(place.chat),
        "kind": _CHAT_KINDS[place.chat_type],
        "title": "",
        "chat_type": place.chat_type.value,
        "thread": storable(place.thread),
        "participant": storable(place.participant),
        "session_key": storable(place.session_key),
        "now": work.now,
    }
    values["chat_id"] = work.value(sql.CHAT, values)
    conversation = ConversationId(work.value(sql.CONVERSATION, values))
    open_session(work, conversation)
    known = Known(conversation=conversation, chat=int(str(values["chat_id"])), user_name="")
    return _name(work, place, known, "")


def _name(work: Work, place: Place, known: Known, name: str) -> Known:
    """Write down what the place is called, for lists, search and targets."""
    shown = storable(name) or storable(place.chat)
    key = storable(place.session_key)
    work.run(
        sql.NAMES,
        {
            "conv": known.conversation,
            "user_name": storable(name),
            "display_name": shown,
            "search_text": f"{shown}\n{key}".casefold(),
        },
    )
    if place.chat_type is ChatType.DM or not name:
        see(work, place, name=storable(name))
    return Known(conversation=known.conversation, chat=known.chat, user_name=storable(name))


def _is_own(place: Place) -> bool:
    return place.chat_type is ChatType.DM or bool(place.participant)
