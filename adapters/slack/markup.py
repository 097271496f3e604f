"""How replies and cards look on Slack. Pure; what is shown of a call is what runs."""

from collections.abc import Sequence
from typing import Any, Final

from adapters.slack.buttons import actions_of, too_long
from adapters.slack.forms import MAX_FIELDS, form_of
from adapters.slack.markdown import Chunk, Prose, Table, aligned, chunks_of, escape, sendable
from adapters.slack.payload import Payload
from adapters.slack.splitting import cut, split, units
from adapters.slack.words import unescape
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.files import FileLimits
from gateway.domain.text import shorten, show_escapes
from gateway.ports import Capabilities, CardView

MAX_MESSAGE: Final = 11_000
"""Units of all blocks of a message: Slack refuses 12 000 of Markdown, and some 13 000 of anything."""
MAX_BLOCKS: Final = 45
"""Slack takes 50; some are kept free for a word about how it was delivered."""
MAX_SECTION: Final = 2_900
MAX_FALLBACK_BYTES: Final = 3_000
"""An edit takes 4000 bytes of text, after it is escaped."""
MAX_INLINE: Final = 1_500
"""Units of arguments a card shows whole (CONTRACTS §e)."""
SHOWN_INLINE: Final = 1_200
"""What it shows of longer ones, which go first as a file."""
MAX_UPLOAD: Final = 1_000_000_000

_CAPABILITIES: Final = Capabilities(
    max_text=MAX_MESSAGE,
    buttons=True,
    max_inline=MAX_INLINE,
    edits=True,
    threads=True,
    uploads=True,
    modal_fields=MAX_FIELDS,
    files=FileLimits(file=MAX_UPLOAD, image=MAX_UPLOAD, album=10, caption=3_000),
)

Block = dict[str, Any]


class SlackRenderer:
    """Implements `gateway.ports.Renderer`."""

    @property
    def capabilities(self) -> Capabilities:
        """What Slack can do."""
        return _CAPABILITIES

    def text(self, markdown: str) -> tuple[Part, ...]:
        """Return the messages of a reply; none when nothing of it would be seen."""
        return tuple(
            _message(chunks, index) for index, chunks in enumerate(_packed(chunks_of(markdown)))
        )

    def card(self, view: CardView) -> tuple[Part, Part | None]:
        """Return the card, and the file with arguments that are too long for it."""
        part = _card(view, DeliveryKind.CARD)
        if units(view.arguments) <= MAX_INLINE:
            return part, None
        payload = Payload(name=f"call-{view.short}.json", bound=True).to_json()
        return part, Part(kind=DeliveryKind.FILE, body=view.arguments, payload=payload)

    def closed_card(self, view: CardView) -> Part:
        """Return the edit that takes the buttons away and says what ended the card."""
        return _card(view, DeliveryKind.EDIT)


def plain_blocks(text: str) -> list[Block]:
    """Return a text without any looks, for what Slack could not take with them."""
    return [
        {"type": "section", "text": {"type": "plain_text", "text": piece, "emoji": False}}
        for piece in cut(sendable(text), MAX_SECTION)
    ]


def fallback(text: str) -> str:
    """Return what notifications show, short enough for an edit as well."""
    shown = escape(" ".join(sendable(text).split()))
    if len(shown.encode()) <= MAX_FALLBACK_BYTES:
        return shown or "…"
    # Two for the mark at the end; half an escape or half a character is dropped with it.
    head = shown.encode()[: MAX_FALLBACK_BYTES - 8].decode("utf-8", "ignore")
    if head.rfind("&") > head.rfind(";"):
        head = head[: head.rfind("&")]
    return f"{head}…"


# --- replies --------------------------------------------------------------------------


def _packed(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Put blocks together into messages: within the size, and with one table at most in each."""
    messages: list[list[Chunk]] = []
    size = 0
    for chunk in _pieces(chunks):
        new = _size(chunk) + 2
        full = not messages or size + new > MAX_MESSAGE or len(messages[-1]) >= MAX_BLOCKS
        second = isinstance(chunk, Table) and any(
            isinstance(each, Table) for message in messages[-1:] for each in message
        )
        if full or second:
            messages.append([])
            size = 0
        last = messages[-1][-1] if messages[-1] else None
        if isinstance(chunk, Prose) and isinstance(last, Prose):
            messages[-1][-1] = Prose(text=f"{last.text}\n\n{chunk.text}")
        else:
            messages[-1].append(chunk)
        size += new
    return messages


def _pieces(chunks: Sequence[Chunk]) -> list[Chunk]:
    found: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, Table):
            found.append(chunk)
        else:
            found += [Prose(text=piece) for piece in split(chunk.text, MAX_MESSAGE - 2)]
    return [chunk for chunk in found if isinstance(chunk, Table) or chunk.text.strip()]


def _size(chunk: Chunk) -> int:
    if isinstance(chunk, Prose):
        return units(chunk.text)
    return sum(units(cell) for row in chunk.rows for cell in row)


def _message(chunks: Sequence[Chunk], index: int) -> Part:
    body = "\n\n".join(
        unescape(chunk.text) if isinstance(chunk, Prose) else aligned(chunk) for chunk in chunks
    )
    blocks = [_block(chunk) for chunk in chunks]
    payload = Payload(blocks=blocks, text=fallback(body), index=index)
    return Part(kind=DeliveryKind.TEXT, body=body, payload=payload.to_json())


def _block(chunk: Chunk) -> Block:
    if isinstance(chunk, Prose):
        return {"type": "markdown", "text": chunk.text}
    rows = [[{"type": "raw_text", "text": cell} for cell in row] for row in chunk.rows]
    return {"type": "table", "rows": rows}


# --- cards ------------------------------------------------------------------------------


def _card(view: CardView, kind: DeliveryKind) -> Part:
    title = shorten(show_escapes(view.title), MAX_SECTION // 8)
    arguments = _arguments(view.arguments)
    below = _below(view)
    room = MAX_MESSAGE - units(title) * 5 - sum(_block_size(b) for b in (*arguments, *below))
    text = _text(show_escapes(view.text), room=room)
    blocks = [_section(f"*{escape(title)}*"), *text, *arguments, *below]
    said = " · ".join(part for part in (view.closed, view.title, view.text) if part)
    form = {} if view.form is None else form_of(view.form, view.answers, view.keys)
    payload = Payload(
        blocks=blocks, text=fallback(show_escapes(said)), form=form, bound=True
    ).to_json()
    words = "\n\n".join(part for part in (view.title, view.text, view.closed) if part)
    return Part(kind=kind, body=show_escapes(words), payload=payload)


def _below(view: CardView) -> list[Block]:
    blocks: list[Block] = []
    long = too_long(view.buttons)
    if long:
        listed = "\n".join(f"{number}. {whole}" for number, whole in long.values())
        blocks += [_section(piece) for piece in cut(escape(listed), MAX_SECTION)]
    if view.lines:
        blocks.append(_context(" · ".join(show_escapes(line) for line in view.lines)))
    blocks += actions_of(view.buttons, form=view.form is not None)
    if view.closed:
        blocks.append(_context(show_escapes(view.closed), bold=True))
    return blocks


def _text(text: str, *, room: int) -> list[Block]:
    if not text.strip():
        return []
    shown = escape(sendable(text))
    if units(shown) > room:
        head = cut(shown, max(room - 40, 1))[0]
        left = len(text) - len(unescape(head))
        shown = f"{head}… (+{left} chars)"
    return [_section(piece) for piece in cut(shown, MAX_SECTION) if piece.strip()]


def _arguments(arguments: str) -> list[Block]:
    """Return arguments as code; what holds the marks of code itself is shown without marks."""
    if not arguments:
        return []
    whole = units(arguments) <= MAX_INLINE
    head = arguments if whole else cut(arguments, SHOWN_INLINE, keep_lines=True)[0]
    left = len(arguments) - len(head)
    more = [] if whole else [_context(f"(+{left} chars)")]
    if "```" in head:
        literal = {"type": "text", "text": head}
        preformatted = {"type": "rich_text_preformatted", "elements": [literal]}
        return [{"type": "rich_text", "elements": [preformatted]}, *more]
    pieces = cut(escape(head), MAX_SECTION, keep_lines=True)
    return [*(_section(f"```\n{piece}\n```") for piece in pieces), *more]


def _section(text: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _context(text: str, *, bold: bool = False) -> Block:
    shown = escape(shorten(text, MAX_SECTION // 5))
    element = {"type": "mrkdwn", "text": f"*{shown}*" if bold else shown, "verbatim": True}
    return {"type": "context", "elements": [element]}


def _block_size(block: Block) -> int:
    if block["type"] == "actions":
        return sum(len(element["text"]["text"]) for element in block["elements"])
    if block["type"] == "context":
        return units(block["elements"][0]["text"])
    return units(block["text"]["text"]) if "text" in block else MAX_INLINE
