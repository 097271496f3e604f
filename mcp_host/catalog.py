"""What a server offers: its tool list read page by page, one value per tool, as it was sent.

Reads leniently: a malformed tool is left out with a reason, the others stay. Knows no aliases,
filters or trust; those are the registry's.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, cast

MAX_TOOLS: Final = 10_000
MAX_PROBLEMS: Final = 20

AskPage = Callable[[str | None], Awaitable[Mapping[str, object]]]
"""Sends `tools/list` with a cursor and returns the raw result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """One tool as its server lists it, unsanitised.

    `annotations` is the wire's object, so that a hint of the wrong type is seen as such.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, object]
    output_schema: Mapping[str, object] | None = None
    annotations: Mapping[str, object] = field(default_factory=dict[str, object])


class Kind(StrEnum):
    """What a server may offer besides tools."""

    RESOURCES = "resources"
    PROMPTS = "prompts"


class Stock(StrEnum):
    """`NONE`: not offered. `EMPTY`: offered, and nothing is there. `FULL`: there may be something.

    A list that could not be read is `FULL`: it may be there the next time.
    """

    NONE = "none"
    EMPTY = "empty"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The tools of one server and its stock of the rest; `problems` says what was left out."""

    tools: tuple[ListedTool, ...] = ()
    problems: tuple[str, ...] = ()
    resources: Stock = Stock.NONE
    prompts: Stock = Stock.NONE


async def read_tools(ask_page: AskPage) -> Catalog:
    """Read every page; stops at `MAX_TOOLS` tools and at a cursor that comes back."""
    tools: list[ListedTool] = []
    problems: list[str] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        page = await ask_page(cursor)
        listed = page.get("tools")
        if not isinstance(listed, list):
            problems.append("a page without a list of tools")
            listed = []
        for raw in cast("list[object]", listed):
            tool = read_tool(raw)
            if isinstance(tool, ListedTool):
                tools.append(tool)
            else:
                problems.append(tool)
        if len(tools) > MAX_TOOLS:
            problems.append(f"more than {MAX_TOOLS} tools; the rest was not read")
            break
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following:
            break
        if following in seen:
            problems.append("the list repeats a cursor; the rest was not read")
            break
        seen.add(following)
        cursor = following
    return Catalog(tools=tuple(tools[:MAX_TOOLS]), problems=tuple(problems[:MAX_PROBLEMS]))


def read_tool(raw: object) -> ListedTool | str:
    """Return one tool of a list as its server sent it, or why it is none."""
    if not isinstance(raw, dict):
        return "a tool that is not an object"
    wire = cast("dict[str, object]", raw)
    name = wire.get("name")
    if not isinstance(name, str) or not name:
        return "a tool without a name"
    schema = wire.get("inputSchema")
    if not isinstance(schema, dict):
        return f"tool {name!r} without an input schema"
    output = wire.get("outputSchema")
    annotations = wire.get("annotations")
    hints = cast("dict[str, object]", annotations) if isinstance(annotations, dict) else {}
    return ListedTool(
        name=name,
        title=_text(wire.get("title")) or _text(hints.get("title")),
        description=_text(wire.get("description")),
        input_schema=cast("dict[str, object]", schema),
        output_schema=cast("dict[str, object]", output) if isinstance(output, dict) else None,
        annotations=hints,
    )


def as_listed(tool: ListedTool) -> dict[str, object]:
    """Return what `read_tool` would read as this tool."""
    wire: dict[str, object] = {"name": tool.name, "inputSchema": dict(tool.input_schema)}
    if tool.title:
        wire["title"] = tool.title
    if tool.description:
        wire["description"] = tool.description
    if tool.output_schema is not None:
        wire["outputSchema"] = dict(tool.output_schema)
    if tool.annotations:
        wire["annotations"] = dict(tool.annotations)
    return wire


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
