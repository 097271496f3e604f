"""A call that fails because a person must first open links: puts them to the person, one by one."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from mcp import MCPError

from gateway.domain.form import FormAction
from mcp_host.calls import Asker, Returned
from mcp_host.statistics import AnswerCount

MAX_LINKS: Final = 3

GIVEN: Final = (
    "{} wants a person to open a link first. It was given to them: "
    "call it again once they say that they are done."
)
REFUSED: Final = "{} wants a person to open a link first, and they did not agree to."


async def ask_for_links(
    tool: str, error: MCPError, asker: Asker, *, counts: AnswerCount
) -> Returned:
    """Ask for each link that the error names; return what the model is told instead of a result.

    Raises:
        MCPError: The error itself: it names no link.
    """
    links = _links(error.data)
    if not links:
        raise error
    for link in links:
        with counts.one() as told:
            told.action = (await asker.answer({**link, "mode": "url"})).get("action")
        if told.action != FormAction.ACCEPT:
            return _told(REFUSED.format(tool))
    return _told(GIVEN.format(tool))


def _links(data: object) -> Sequence[Mapping[str, object]]:
    listed = cast("dict[str, object]", data).get("elicitations") if isinstance(data, dict) else None
    items = cast("list[object]", listed) if isinstance(listed, list) else []
    links = [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]
    return tuple(links[:MAX_LINKS])


def _told(text: str) -> Returned:
    return Returned(raw={"content": [{"type": "text", "text": text}], "isError": True}, seconds=0.0)
