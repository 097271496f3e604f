"""Whatever a model writes: its messages fit, are whole, and mention nobody."""

from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.payload import Payload
from adapters.telegram.rich import MAX_ENTITIES, MAX_TEXT, is_visible, units
from adapters.terminal.markup import TerminalRenderer
from gateway.domain.delivery import Part
from tests.fakes.telegram.text import with_found
from tests.support.requirement import requirement

RENDERER = TelegramRenderer()
MARKS = "*_~`#>-+|[]<>!\\=.:@$\"'^ \t\n"
ANYTHING = st.text(max_size=400)
MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "```python\n",
                "```\n",
                "**",
                "\n\n",
                "> ",
                "- ",
                "| a | b |\n|---|---|\n",
                "@abc",
                "https://a.example/",
                "[a](http://b.example/",
            ]
        ),
        st.text(st.sampled_from("abc019é漢👍" + MARKS), max_size=40),
    ),
    max_size=30,
).map("".join)
LENGTHENED = st.tuples(MARKDOWN, st.integers(1, 60)).map(lambda drawn: drawn[0] * drawn[1])
PINGS = {"mention", "text_mention", "bot_command", "hashtag", "cashtag"}


def check(part: Part) -> None:
    """Look at one message as Telegram does."""
    body = part.body.encode("utf-16-le")
    assert 0 < units(part.body) <= MAX_TEXT
    assert is_visible(part.body)
    entities = Payload.from_json(part.payload).entities
    assert len(entities) <= MAX_ENTITIES
    for entity in entities:
        assert 0 <= entity.offset < entity.end <= len(body) // 2
        assert entity.type not in PINGS
        # Strict: half a pair at either edge is an error.
        body[2 * entity.offset : 2 * entity.end].decode("utf-16-le")
    given = [{"type": e.type, "offset": e.offset, "length": e.length} for e in entities]
    # What Telegram finds by itself besides.
    assert "mention" not in {found["type"] for found in with_found(part.body, given)}


def flat(text: str) -> list[str]:
    """The letters and figures of a text that no markup is made of."""
    return [character for character in text if character in "bé漢👍"]


@requirement("render.never_cuts_pairs", "render.never_empty", "threat.s23")
@given(st.one_of(ANYTHING, LENGTHENED))
def test_messages_of_any_text_are_within_the_limits_of_telegram(markdown: str) -> None:
    parts = RENDERER.text(markdown)

    for part in parts:
        check(part)
    if not is_visible(markdown):
        assert parts == ()


@requirement("render.nothing_lost")
@given(st.text(st.sampled_from("bé漢👍*_~#>-+|[]<!\\=. \n"), max_size=600), st.integers(1, 40))
def test_messages_of_any_markup_show_every_letter_in_order(markdown: str, times: int) -> None:
    shown = "".join(part.body for part in RENDERER.text(markdown * times))

    assert flat(shown) == flat(markdown * times)


@requirement("render.never_empty", "render.never_cuts_pairs")
@given(ANYTHING)
def test_a_terminal_is_sent_whole_characters_or_nothing(markdown: str) -> None:
    for part in TerminalRenderer().text(markdown):
        assert part.body.strip()
        part.body.encode()
