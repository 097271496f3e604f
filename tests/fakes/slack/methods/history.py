"""What was said before, page by page."""

from collections.abc import Sequence

from tests.fakes.slack import payloads
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.methods.call import Asked
from tests.fakes.slack.state import Json, Message


async def history(asked: Asked) -> Json:
    """Return what is in the channel itself, newest first."""
    channel = asked.channel()
    found = [m for m in channel.messages.values() if m.thread_ts in ("", m.ts)]
    return _page(asked, found, newest_first=True)


async def replies(asked: Asked) -> Json:
    """Return a thread with its first message, oldest first."""
    channel, root = asked.channel(), asked.params.text("ts")
    if root not in channel.messages:
        raise ApiError("thread_not_found")
    first = [channel.messages[root]]
    found = [m for m in channel.messages.values() if m.thread_ts == root and m.ts != root]
    # Its first message comes whatever the bounds are.
    return _page(asked, found, newest_first=False, always=first)


def _page(
    asked: Asked, found: Sequence[Message], *, newest_first: bool, always: Sequence[Message] = ()
) -> Json:
    params = asked.params
    oldest, latest = params.text("oldest", "0"), params.text("latest", "9")
    inclusive, metadata = params.flag("inclusive"), params.flag("include_all_metadata")
    inside = [
        m
        for m in found
        if not m.deleted
        and not m.ephemeral_to
        and (oldest < m.ts < latest or (inclusive and m.ts in (oldest, latest)))
    ]
    inside.sort(key=lambda m: m.ts, reverse=newest_first)
    start, limit = int(params.text("cursor") or 0), params.whole("limit", 100)
    page = [*(always if start == 0 else ()), *inside[start : start + limit]]
    more = start + limit < len(inside)
    return {
        "messages": [
            payloads.message(asked.service, asked.team, m, metadata=metadata) for m in page
        ],
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }
