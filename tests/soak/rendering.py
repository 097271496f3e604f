"""Writes random Markdown through every renderer and looks at the messages as a platform does.

Counted: texts, messages, and what was wrong with any. Run as
`python -m tests.soak.rendering --texts N [--seed N]`.
"""

import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.payload import Payload
from adapters.telegram.rich import MAX_ENTITIES, MAX_TEXT, is_visible, units
from adapters.terminal.markup import TerminalRenderer
from gateway.domain.delivery import Part
from gateway.ports import Renderer
from tests.fakes.telegram.text import with_found
from tests.soak.command import announced, dice_of, parser, tell

PIECES: Final = (
    "```python\n", "```\n", "`", "**", "*", "_", "~~", "~", "\n\n", "\n", " ", "> ", "- ", "1. ",
    "# ", "| b | é |\n|---|---|\n", "| b | ", "[b](http://é.example/)", "<b>", "\\", "<!-- ", "[",
    "!", "@b", "@bbbbb", "https://b.example/", "/b", "#b", "é", "漢", "👍", "👩‍👧", "b" * 50,
)  # fmt: skip
LETTERS: Final = frozenset("漢👍")
"""Nothing is marked up with these, so every one must be shown."""
PINGS: Final = frozenset({"mention", "text_mention", "bot_command"})
SHOWN: Final = 10
"""So many wrong texts are told."""


def written(dice: random.Random) -> str:
    """Return a text of random pieces, one in ten longer than any message."""
    longest = 900 if dice.random() < 0.1 else 60
    return "".join(dice.choices(PIECES, k=dice.randrange(longest)))


def wrong_on_telegram(part: Part) -> str:
    """Say what Telegram would refuse, drop or misuse of a message, "" when nothing."""
    body = part.body.encode("utf-16-le", "surrogatepass")
    entities = Payload.from_json(part.payload).entities
    if not 0 < units(part.body) <= MAX_TEXT or not is_visible(part.body):
        return "length"
    if len(entities) > MAX_ENTITIES or any(entity.type in PINGS for entity in entities):
        return "entities"
    given = [{"type": e.type, "offset": e.offset, "length": e.length} for e in entities]
    if any(found["type"] == "mention" for found in with_found(part.body, given)):
        return "ping"
    try:
        part.body.encode()
        for entity in entities:
            if not 0 <= entity.offset < entity.end <= len(body) // 2:
                return "range"
            body[2 * entity.offset : 2 * entity.end].decode("utf-16-le")
    except UnicodeError:
        return "pair"
    return ""


def wrong(markdown: str, renderer: Renderer) -> str:
    """Say what is wrong with the messages of a text, "" when nothing."""
    parts = renderer.text(markdown)
    shown = "".join(part.body for part in parts)
    if [c for c in shown if c in LETTERS] != [c for c in markdown if c in LETTERS]:
        return "lost"
    if any(not part.body.strip() for part in parts):
        return "empty"
    if renderer.capabilities.max_text is None:
        return ""
    return next((said for said in map(wrong_on_telegram, parts) if said), "")


def render(texts: int, *, seed: int, renderers: Sequence[Renderer]) -> dict[str, Any]:
    """Return what rendering so many texts came to."""
    dice = dice_of(seed)
    found: Counter[str] = Counter()
    problems: list[str] = []
    for _ in range(texts):
        markdown = written(dice)
        for renderer in renderers:
            said = wrong(markdown, renderer)
            found[said or "whole"] += 1
            if said and len(problems) < SHOWN:
                problems.append(f"{said}: {markdown[:300]!r}")
    return {"seed": seed, "texts": texts, "messages": dict(found), "problems": problems}


def main() -> int:
    options = parser(__doc__, kills=None)
    options.add_argument("--texts", type=int, default=2_000)
    given = options.parse_args()
    seed = announced(given.seed)
    report = render(given.texts, seed=seed, renderers=(TelegramRenderer(), TerminalRenderer()))
    return tell(report, histogram=None, path=given.json)


if __name__ == "__main__":
    sys.exit(main())
