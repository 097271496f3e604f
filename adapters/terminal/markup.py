"""How replies and cards look in a terminal. Pure; strips what would steer the terminal."""

from adapters.terminal.buttons import NUMBERED, payload_of
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.text import show_escapes, strip_terminal
from gateway.ports import Capabilities, CardView

_RULE = "-" * 60


class TerminalRenderer:
    """Implements `gateway.ports.Renderer`; nothing is cut, a terminal scrolls.

    `interactive` false: nobody can answer, so no card can be asked here.
    """

    def __init__(self, *, interactive: bool = True) -> None:
        self.capabilities = Capabilities(max_text=None, buttons=interactive, edits=interactive)

    def text(self, markdown: str) -> tuple[Part, ...]:
        """Return the reply as one part."""
        shown = strip_terminal(markdown)
        return (Part(kind=DeliveryKind.TEXT, body=shown),) if shown.strip() else ()

    def card(self, view: CardView) -> tuple[Part, Part | None]:
        """Return the card with its buttons as numbered lines, or as words where text is typed."""
        body = "\n".join([_RULE, *_head(view), *_choices(view)])
        return Part(kind=DeliveryKind.CARD, body=body, payload=payload_of(view)), None

    def closed_card(self, view: CardView) -> Part:
        """Return the one line that says how it ended; the card above it stays readable."""
        line = f"[{view.short}] {show_escapes(view.title)}: {show_escapes(view.closed)}"
        return Part(kind=DeliveryKind.EDIT, body=line, payload=payload_of(view))


def _head(view: CardView) -> list[str]:
    lines = [show_escapes(view.title)] if view.title else []
    lines += [strip_terminal(show_escapes(view.text))] if view.text else []
    lines += [view.arguments] if view.arguments else []
    lines += [show_escapes(line) for line in view.lines]
    return lines


def _choices(view: CardView) -> list[str]:
    labels = [show_escapes(button.label).replace("\n", " ") for button in view.buttons]
    hint = [show_escapes(view.reply_hint)] if view.reply_hint else []
    if any(button.action in NUMBERED for button in view.buttons):
        return [*hint, *(f"{n}) {label}" for n, label in enumerate(labels, start=1))]
    if labels:
        return [*hint, "or type: " + ", ".join(label.casefold() for label in labels)]
    return hint
