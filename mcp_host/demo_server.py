"""The bundled demo MCP server: notes to read, to write, and an event planned through a form.

A program of its own, spoken to over stdio like any other server; shares nothing with the gateway.
Notes live in the file that `HERMES_DEMO_NOTES` names, or in memory.
"""

import asyncio
import fcntl
import json
import os
import signal
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, cast

import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

NOTES_FILE: Final = "HERMES_DEMO_NOTES"
MAX_NOTES: Final = 1_000

_FORM_KEY: Final = "event"
_KINDS: Final = {"meeting": "Meeting", "deadline": "Deadline", "trip": "Trip"}
_EVENT_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "date": {"type": "string", "format": "date", "title": "Date"},
        "kind": {
            "type": "string",
            "title": "Kind of event",
            "oneOf": [{"const": value, "title": title} for value, title in _KINDS.items()],
        },
        "remind": {"type": "boolean", "title": "Remind me the day before", "default": True},
        "note": {"type": "string", "title": "Note", "maxLength": 500},
    },
    "required": ["date", "kind", "remind"],
}
_NOTE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "text": {"type": "string"},
        "created_at": {"type": "string"},
    },
    "required": ["title", "text", "created_at"],
}

_TOOLS: Final = [
    wire.Tool(
        name="list_notes",
        title="List notes",
        description="List the stored notes, newest first; with a text, only those that contain it.",
        input_schema={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "Only notes that contain this text."}
            },
        },
        output_schema={
            "type": "object",
            "properties": {"notes": {"type": "array", "items": _NOTE_SCHEMA}},
            "required": ["notes"],
        },
        annotations=wire.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    wire.Tool(
        name="add_note",
        title="Add a note",
        description="Store a new note with a title and a text.",
        input_schema={
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "A short title."},
                "text": {"type": "string", "description": "What to remember."},
            },
            "required": ["title", "text"],
        },
        annotations=wire.ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=False,
            open_world_hint=False,
        ),
    ),
    wire.Tool(
        name="plan_event",
        title="Plan an event",
        description="Plan an event: asks for its date and kind in a form and stores it as a note.",
        input_schema={
            "type": "object",
            "properties": {"title": {"type": "string", "description": "What the event is called."}},
            "required": ["title"],
        },
        annotations=wire.ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=False,
            open_world_hint=False,
        ),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One stored note; `created_at` is ISO 8601 in UTC."""

    title: str
    text: str
    created_at: str


class BadRequest(Exception):
    """A call that cannot be carried out, with the reason for whoever called."""


class Notebook:
    """The notes, in a file that is always whole, or in memory without one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._notes: list[Note] = []

    def all(self) -> list[Note]:
        """Return the notes, oldest first.

        Raises:
            BadRequest: The file cannot be read; it is left as it is.
        """
        if self._path is None:
            return list(self._notes)
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
            return [Note(**row) for row in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise BadRequest(f"the notes file cannot be read: {type(error).__name__}") from error

    def add(self, *, title: str, text: str) -> Note:
        """Store a note and return it.

        Raises:
            BadRequest: The notebook is full, or its file cannot be read or written.
        """
        note = Note(title=title, text=text, created_at=datetime.now(UTC).isoformat())
        try:
            with self._alone():
                notes = [*self.all(), note]
                if len(notes) > MAX_NOTES:
                    raise BadRequest(f"the notebook is full: {MAX_NOTES} notes")
                self._write(notes)
        except OSError as error:
            raise BadRequest(f"the notes file cannot be written: {error.strerror}") from error
        return note

    def _write(self, notes: list[Note]) -> None:
        if self._path is None:
            self._notes = notes
            return
        text = json.dumps([asdict(note) for note in notes], indent=1)
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=f"{self._path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Keep other servers on the same file from writing between our reading and writing."""
        if self._path is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_name(f"{self._path.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class DemoServer:
    """The three tools over a notebook, for clients of both protocol eras."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    def build(self) -> Server[dict[str, Any]]:
        """Return the SDK server that offers them."""
        return Server(
            "notes",
            version="1",
            title="Notes (demo)",
            instructions="A small notebook to try things out.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def _list_tools(
        self, ctx: Any, params: wire.PaginatedRequestParams | None
    ) -> wire.ListToolsResult:
        del ctx, params
        return wire.ListToolsResult(tools=_TOOLS)

    async def _call_tool(
        self, ctx: Any, params: wire.CallToolRequestParams
    ) -> wire.CallToolResult | wire.InputRequiredResult:
        arguments = cast("dict[str, object]", params.arguments or {})
        try:
            match params.name:
                case "list_notes":
                    return self._list_notes(arguments)
                case "add_note":
                    return self._add_note(arguments)
                case "plan_event":
                    return await self._plan_event(ctx, params, arguments)
                case _:
                    raise BadRequest("there is no such tool")
        except BadRequest as error:
            return _said(str(error), is_error=True)

    def _list_notes(self, arguments: Mapping[str, object]) -> wire.CallToolResult:
        wanted = _text(arguments, "text", required=False).casefold()
        notes = [
            note
            for note in reversed(self._notebook.all())
            if wanted in f"{note.title}\n{note.text}".casefold()
        ]
        lines = [f"- {note.title}: {note.text}" for note in notes] or ["There are no notes."]
        result = _said("\n".join(lines))
        result.structured_content = {"notes": [asdict(note) for note in notes]}
        return result

    def _add_note(self, arguments: Mapping[str, object]) -> wire.CallToolResult:
        title, text = _text(arguments, "title"), _text(arguments, "text")
        note = self._notebook.add(title=title, text=text)
        return _said(f'Stored the note "{note.title}".')

    async def _plan_event(
        self, ctx: Any, params: wire.CallToolRequestParams, arguments: Mapping[str, object]
    ) -> wire.CallToolResult | wire.InputRequiredResult:
        title = _text(arguments, "title")
        declared = ctx.session.client_capabilities
        if declared is None or declared.elicitation is None:
            raise BadRequest("planning an event needs a form, and this client shows none")
        request = wire.ElicitRequestFormParams(
            message=f'When is "{title}", and what kind of event is it?',
            requested_schema=_EVENT_FORM,
        )
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            answer = await ctx.session.elicit_form(
                request.message, request.requested_schema, related_request_id=ctx.request_id
            )
            return self._plan(title, answer)
        # A client of the newer era brings the answer with a second call.
        answer = (params.input_responses or {}).get(_FORM_KEY)
        if answer is None:
            return wire.InputRequiredResult(
                input_requests={_FORM_KEY: wire.ElicitRequest(params=request)}
            )
        return self._plan(title, answer)

    def _plan(self, title: str, answer: object) -> wire.CallToolResult:
        if not isinstance(answer, wire.ElicitResult):
            raise BadRequest("the answer is none to this form")
        match answer.action:
            case "decline":
                return _said(f'"{title}" was not planned: the form was declined.')
            case "cancel":
                return _said(f'"{title}" was not planned: the form was cancelled.')
            case "accept":
                note = self._notebook.add(title=title, text=_event_text(answer.content or {}))
                return _said(f'Planned "{note.title}": {note.text}.')


def _event_text(content: Mapping[str, object]) -> str:
    day, kind, remind = (content.get(key) for key in ("date", "kind", "remind"))
    if not _is_date(day):
        raise BadRequest("date must be a date like 2026-12-31")
    if kind not in _KINDS:
        raise BadRequest(f"kind must be one of {', '.join(_KINDS)}")
    if not isinstance(remind, bool):
        raise BadRequest("remind must be true or false")
    note = _text(content, "note", required=False)
    parts = [_KINDS[cast("str", kind)], f"on {day}", "with a reminder" if remind else "no reminder"]
    return ", ".join([*parts, note] if note else parts)


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _text(arguments: Mapping[str, object], name: str, *, required: bool = True) -> str:
    value = arguments.get(name, "")
    if not isinstance(value, str):
        raise BadRequest(f"{name} must be a text")
    if required and not value.strip():
        raise BadRequest(f"{name} is missing")
    return value


def _said(text: str, *, is_error: bool = False) -> wire.CallToolResult:
    return wire.CallToolResult(content=[wire.TextContent(text=text)], is_error=is_error)


async def serve() -> None:
    """Answer on stdin and stdout until stdin ends."""
    place = os.environ.get(NOTES_FILE)
    server = DemoServer(Notebook(Path(place) if place else None)).build()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main() -> None:
    """Run the demo server; a signal ends it at once, also in the middle of a call."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    asyncio.run(serve())


if __name__ == "__main__":
    main()
