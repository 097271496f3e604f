"""Where we may send to, and what a target means (SPEC §3)."""

from collections.abc import Sequence
from typing import Final

from gateway.domain.conversation import Ambiguous, Channel
from gateway.domain.ids import THREADED, Actor, ChatType, Place
from store.codec import RowLike, clean, place_from_row, storable
from store.readers.database import Database, Read
from store.readers.decoding import decode_each
from store.sql.reads import channels as sql

MAX_CANDIDATES: Final = 10


class ChannelReader:
    """Implements `gateway.ports.Channels`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        *,
        platform: str | None = None,
        search: str | None = None,
        before: str | None = None,
        limit: int,
    ) -> Sequence[Channel]:
        """Return known channels by platform and name, behind the one that `before` names.

        Raises:
            ValueError: `before` is no channel's target.
        """
        statement = sql.CHANNELS
        behind: dict[str, object] = {}
        if before is not None:
            statement += sql.AND_CHANNEL_BEHIND
            behind = await self._position(before)
        if platform is not None:
            statement += sql.AND_CHANNEL_PLATFORM
        if search:
            statement += sql.AND_CHANNEL_SEARCH
        rows = await self._database.all(
            statement + sql.BY_NAME,
            platform=platform,
            search=fold_name(search or ""),
            search_key=search,
            limit=limit,
            **behind,
        )
        return decode_each(rows, _channel_from_row, what="channel")

    async def _position(self, target: str) -> dict[str, object]:
        head, *parts = storable(target).split(":")
        platform, _, account = head.partition("@")
        row = await self._database.first(
            sql.CHANNEL_POSITION,
            platform=_unescape(platform),
            account=_unescape(account),
            chat=_unescape(parts[0]) if parts else "",
            thread=_unescape(parts[1]) if len(parts) > 1 else "",
        )
        if row is None:
            raise ValueError(f"no channel of an earlier page: {target!r}")
        return {
            "last_platform": row["platform"],
            "last_name": row["name_folded"],
            "last_id": row["id"],
        }

    async def resolve(self, target: str) -> Channel | Ambiguous | None:
        """Find the channel a target names: its id, else its name, else the start of its name."""
        platform, colon, rest = storable(target.strip()).partition(":")
        async with self._database.snapshot() as read:
            if not colon:
                return _only(await _homes(read, platform))
            search = _Search(read, platform)
            return _only(
                await search.by_id(rest)
                or await search.by_name(rest)
                or await search.by_parent(rest)
                or await search.by_prefix(rest)
            )

    async def direct(self, person: Actor, *, limit: int) -> Sequence[Place]:
        """Return the direct chats in which somebody has written to us, the latest first."""
        rows = await self._database.all(
            sql.DIRECT,
            platform=storable(person.platform),
            person=storable(str(person)),
            limit=limit,
        )
        return decode_each(rows, place_from_row, what="place")


class _Search:
    """The steps of `resolve` on one platform; `telegram@work` narrows to an account."""

    def __init__(self, read: Read, platform: str) -> None:
        self._read = read
        name, self._at, account = platform.partition("@")
        self._platform, self._account = _unescape(name), _unescape(account)

    async def by_id(self, text: str) -> Sequence[Channel]:
        # Ids are opaque and may hold a colon, so the whole text is tried before it is split.
        chat, _, thread = text.rpartition(":")
        for chat_key, thread_key in ((text, ""), (chat, thread)):
            if chat_key and (found := await self._at_place(chat_key, thread_key)):
                return found
        return ()

    async def by_name(self, text: str) -> Sequence[Channel]:
        if found := await self._all(sql.CHANNEL_BY_NAME, name=fold_name(text)):
            return found
        name, _, thread = text.rpartition(":")
        if not name:
            return ()
        named = await self._all(sql.CHANNEL_BY_NAME, name=fold_name(name))
        return [
            channel
            for parent in named
            for channel in await self._at_place(parent.place.chat, thread)
        ]

    async def by_parent(self, text: str) -> Sequence[Channel]:
        parent, slash, name = text.rpartition("/")
        if not slash:
            return ()
        return await self._all(sql.CHANNEL_BY_NAME, name=fold_name(name), parent=fold_name(parent))

    async def by_prefix(self, text: str) -> Sequence[Channel]:
        name = fold_name(text)
        return await self._all(sql.CHANNEL_BY_PREFIX, name=name) if name else ()

    async def _at_place(self, chat: str, thread: str) -> Sequence[Channel]:
        values = {"chat": _unescape(chat), "thread": _unescape(thread)}
        found = await self._all(sql.CHANNEL_BY_ID, **values)
        return found or await self._all(sql.PLACE_BY_ID, **values)

    async def _all(
        self, statement: str, *, parent: str | None = None, **values: str
    ) -> Sequence[Channel]:
        rows = await self._read.all(
            statement, platform=self._platform, limit=MAX_CANDIDATES, **values
        )
        if parent is not None:
            rows = [row for row in rows if fold_name(clean(row["parent_name"])) == parent]
        if self._at:
            rows = [row for row in rows if row["account"] == self._account]
        return decode_each(rows, _channel_from_row, what="channel")


async def _homes(read: Read, platform: str) -> Sequence[Channel]:
    name, at, text = platform.partition("@")
    account = _unescape(text)
    homes = await read.all(sql.HOMES, platform=_unescape(name), limit=MAX_CANDIDATES)
    return [await _home(read, home) for home in homes if not at or home["account"] == account]


async def _home(read: Read, home: RowLike) -> Channel:
    values = {
        "platform": home["platform"],
        "chat": home["chat_key"],
        "thread": home["thread_key"],
        "limit": MAX_CANDIDATES,
    }
    for statement in (sql.CHANNEL_BY_ID, sql.PLACE_BY_ID):
        rows = await read.all(statement, **values)
        known = [row for row in rows if row["account"] == home["account"]]
        if found := decode_each(known, _channel_from_row, what="channel"):
            return found[0]
    # Set in the configuration and never seen: its type is only a guess, its ids are not.
    chat, thread = clean(home["chat_key"]), clean(home["thread_key"])
    place = Place(
        platform=clean(home["platform"]),
        account=clean(home["account"]),
        chat=chat,
        chat_type=ChatType.THREAD if thread else ChatType.CHANNEL,
        thread=thread,
    )
    return _channel(place, name=chat)


def fold_name(name: str) -> str:
    """Return a name as the directory compares it: casefolded, leading `#` and `@` removed."""
    return name.lstrip("#@").casefold()


def _only(found: Sequence[Channel]) -> Channel | Ambiguous | None:
    if len(found) > 1:
        return Ambiguous(candidates=tuple(channel.target for channel in found))
    return found[0] if found else None


def _channel_from_row(row: RowLike) -> Channel:
    chat_type, thread = ChatType(row["chat_type"]), clean(row["thread_key"])
    if bool(thread) != (chat_type in THREADED):
        chat_type = ChatType.THREAD if thread else ChatType.GROUP
    place = Place(
        platform=clean(row["platform"]),
        account=clean(row["account"]),
        chat=clean(row["chat_key"]),
        chat_type=chat_type,
        thread=thread,
    )
    return _channel(place, name=clean(row["name"]))


def _channel(place: Place, *, name: str) -> Channel:
    return Channel(
        target=target_of(place),
        platform=place.platform,
        name=name,
        chat_type=place.chat_type.value,
        place=place,
    )


def target_of(place: Place) -> str:
    """Return the target that `resolve` leads back to this place."""
    platform, account = _escape(place.platform), _escape(place.account)
    parts = [_escape(part) for part in (place.chat, place.thread) if part]
    return ":".join((f"{platform}@{account}" if account else platform, *parts))


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unescape(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")
