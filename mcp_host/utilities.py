"""Our own tools for what a server offers besides tools: its resources and its prompts.

Says which there are and why not, asks the server, and shapes its answers like a tool's.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from mcp_host.catalog import Catalog, Kind, ListedTool, Stock
from mcp_host.server_config import ToolsConfig

Ask = Callable[[str, Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Sends one request by its method and parameters and returns the raw result."""

MAX_PAGES: Final = 20
_READ: Final = {"readOnlyHint": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilities:
    """The utilities of one server; `off` maps the others to why they are not there."""

    tools: tuple[ListedTool, ...]
    off: Mapping[str, str]


def utilities_of(config: ToolsConfig, catalog: Catalog) -> Utilities:
    """Return what a server's stock and its entry allow."""
    tools: list[ListedTool] = []
    off: dict[str, str] = {}
    for kind, wanted, stock in (
        (Kind.RESOURCES, config.resources, catalog.resources),
        (Kind.PROMPTS, config.prompts, catalog.prompts),
    ):
        why = _why_off(kind, wanted, stock)
        if why:
            off.update({tool.name: why for tool in _TOOLS[kind]})
        else:
            tools.extend(_TOOLS[kind])
    return Utilities(tools=tuple(tools), off=off)


async def use(ask: Ask, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Do what the utility of that name does; returns a raw result of `tools/call`."""
    try:
        return await _use(ask, name, arguments)
    except _Unusable as problem:
        text = f"{name} was not run: {problem}"
        return {"content": [{"type": "text", "text": text}], "isError": True}


async def _use(ask: Ask, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    match name:
        case "list_resources":
            resources = await _listed(ask, "resources/list", "resources")
            templates = await _listed(ask, "resources/templates/list", "resourceTemplates")
            return _as_json({"resources": resources, "templates": templates})
        case "read_resource":
            raw = await ask("resources/read", {"uri": _text(arguments, "uri")})
            contents = raw.get("contents")
            parts = cast("list[object]", contents) if isinstance(contents, list) else []
            return _result([{"type": "resource", "resource": part} for part in parts], raw)
        case "list_prompts":
            return _as_json({"prompts": await _listed(ask, "prompts/list", "prompts")})
        case "get_prompt":
            return await _prompt(ask, arguments)
        case _:
            raise _Unusable(f"there is no utility {name}")


class _Unusable(Exception):
    """The arguments say too little; nothing was sent."""


def _why_off(kind: Kind, wanted: bool | None, stock: Stock) -> str:
    if wanted is False:
        return f"tools.{kind} is switched off"
    match stock:
        case Stock.NONE:
            return f"the server offers no {kind}"
        case Stock.EMPTY if not wanted:
            return f"the server has no {kind}"
        case _:
            return ""


async def _listed(ask: Ask, method: str, field: str) -> list[object]:
    found: list[object] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await ask(method, {"cursor": cursor} if cursor else {})
        listed = page.get(field)
        found += cast("list[object]", listed) if isinstance(listed, list) else []
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following or following == cursor:
            break
        cursor = following
    return found


async def _prompt(ask: Ask, arguments: Mapping[str, object]) -> Mapping[str, object]:
    params: dict[str, object] = {"name": _text(arguments, "name")}
    given = arguments.get("arguments")
    if isinstance(given, dict):
        # A prompt takes texts alone.
        params["arguments"] = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in cast("dict[str, object]", given).items()
        }
    raw = await ask("prompts/get", params)
    messages = raw.get("messages")
    blocks: list[object] = []
    described = raw.get("description")
    if isinstance(described, str) and described:
        blocks.append({"type": "text", "text": described})
    for message in cast("list[object]", messages) if isinstance(messages, list) else []:
        fields = cast("dict[str, object]", message) if isinstance(message, dict) else {}
        blocks.append({"type": "text", "text": f"{fields.get('role')}:"})
        content = fields.get("content")
        blocks.extend(cast("list[object]", content) if isinstance(content, list) else [content])
    return _result(blocks, raw)


def _as_json(value: Mapping[str, object]) -> Mapping[str, object]:
    text = json.dumps(value, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}]}


def _result(blocks: Sequence[object], raw: Mapping[str, object]) -> Mapping[str, object]:
    meta = raw.get("_meta")
    return {"content": list(blocks), **({"_meta": meta} if isinstance(meta, dict) else {})}


def _text(arguments: Mapping[str, object], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str) or not value:
        raise _Unusable(f'it needs a text "{key}"')
    return value


def _tool(
    name: str, does: str, properties: Mapping[str, object], required: Sequence[str] = ()
) -> ListedTool:
    return ListedTool(
        name=name,
        title="",
        description=does,
        input_schema={
            "type": "object",
            "properties": dict(properties),
            **({"required": list(required)} if required else {}),
        },
        annotations=_READ,
    )


_TEXT: Final = {"type": "string"}
_TOOLS: Final[Mapping[Kind, tuple[ListedTool, ...]]] = {
    Kind.RESOURCES: (
        _tool("list_resources", "Lists the resources of this server and their URI templates.", {}),
        _tool("read_resource", "Reads one resource of this server.", {"uri": _TEXT}, ["uri"]),
    ),
    Kind.PROMPTS: (
        _tool("list_prompts", "Lists the prompts of this server and their arguments.", {}),
        _tool(
            "get_prompt",
            "Gets one prompt of this server, filled in with arguments.",
            {
                "name": _TEXT,
                "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            ["name"],
        ),
    ),
}
