"""How replies and cards look on Telegram. Pure; what is shown of a call is what runs."""

from typing import Final

from adapters.telegram.buttons import rows_of
from adapters.telegram.forms import ask_of
from adapters.telegram.markdown import render
from adapters.telegram.mentions import JOINER, quieted, split_quietly
from adapters.telegram.payload import Payload
from adapters.telegram.rich import MAX_TEXT, Builder, cut, is_visible, units
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.files import FileLimits
from gateway.domain.text import show_escapes
from gateway.ports import Capabilities, CardView

MAX_CAPTION: Final = 1_024
NOTE_UNITS: Final = 80
"""Kept free in every message for a word about how it was delivered."""
MAX_INLINE: Final = 1_500
"""UTF-16 units of arguments a card shows whole (CONTRACTS §e)."""
SHOWN_INLINE: Final = 1_200
"""What it shows of longer ones, which go first as a file."""

_LIMIT: Final = MAX_TEXT - NOTE_UNITS
_CAPABILITIES: Final = Capabilities(
    max_text=MAX_TEXT,
    buttons=True,
    max_inline=MAX_INLINE,
    edits=True,
    threads=True,
    uploads=True,
    files=FileLimits(file=50_000_000, image=10_000_000, album=10, caption=MAX_CAPTION - NOTE_UNITS),
)


class TelegramRenderer:
    """Implements `gateway.ports.Renderer`."""

    @property
    def capabilities(self) -> Capabilities:
        """What Telegram can do."""
        return _CAPABILITIES

    def text(self, markdown: str) -> tuple[Part, ...]:
        """Return the messages of a reply; none when nothing of it would be seen."""
        if not is_visible(markdown):
            return ()
        return tuple(
            Part(
                kind=DeliveryKind.TEXT,
                body=part.text,
                payload=Payload(entities=part.entities, index=index).to_json(),
            )
            for index, part in enumerate(split_quietly(render(markdown), limit=_LIMIT))
        )

    def card(self, view: CardView) -> tuple[Part, Part | None]:
        """Return the card, and the file with arguments that are too long for it."""
        part = _card(view, DeliveryKind.CARD)
        if units(view.arguments) <= MAX_INLINE:
            return part, None
        name = f"call-{view.short}.json"
        payload = Payload(name=name, bound=True).to_json()
        return part, Part(kind=DeliveryKind.FILE, body=view.arguments, payload=payload)

    def closed_card(self, view: CardView) -> Part:
        """Return the edit that takes the buttons away and says what ended the card."""
        return _card(view, DeliveryKind.EDIT)


def _card(view: CardView, kind: DeliveryKind) -> Part:
    ask = ask_of(view)
    hint = "" if ask is None else f"Reply to this message: {ask.hint}" if ask.hint else ""
    below = [_shown(line) for line in view.lines]
    below += [hint] if hint else []
    closed = _shown(view.closed)
    body = Builder()
    body.add(_shown(view.title), "bold")
    # What stands below the text is short and must be seen, so the text gets what it leaves.
    reserved = sum(units(line) + 1 for line in [*below, closed]) + 4
    reserved += min(units(view.arguments), MAX_INLINE) + _NOTE_OF_REST if view.arguments else 0
    _text(body, _shown(view.text), room=_LIMIT - body.units - reserved)
    _arguments(body, view.arguments)
    if below:
        body.add("\n\n" + "\n".join(below))
    if closed:
        body.add("\n\n")
        body.add(closed, "bold")
    rich = body.build()
    payload = Payload(entities=rich.entities, rows=rows_of(view.buttons), ask=ask, bound=True)
    return Part(kind=kind, body=rich.text, payload=payload.to_json())


_NOTE_OF_REST: Final = 40


def _shown(text: str) -> str:
    """Return a text of somebody else's with nothing hidden in it, mentioning nobody."""
    return quieted(show_escapes(text))


def _text(body: Builder, text: str, *, room: int) -> None:
    if not text:
        return
    body.add("\n\n" if body.units else "")
    head, rest = cut(text, max(room - _NOTE_OF_REST, 0)) if units(text) > room else (text, "")
    body.add(head)
    if rest:
        body.add(f"… (+{len(rest.replace(JOINER, ''))} chars)")


def _arguments(body: Builder, arguments: str) -> None:
    if not arguments:
        return
    whole = units(arguments) <= MAX_INLINE
    head, rest = (arguments, "") if whole else cut(arguments, SHOWN_INLINE)
    body.add("\n\n" if body.units else "")
    body.add(head, "pre", language="json")
    if rest:
        body.add(f"\n(+{len(rest)} chars)")
