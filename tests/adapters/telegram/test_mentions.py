"""That nobody is notified by a name in a text, and that what has an `@` goes on working."""

import pytest

from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.mentions import JOINER, quiet, quieted
from adapters.telegram.payload import Payload
from adapters.telegram.rich import MAX_TEXT, Entity, Rich, units
from gateway.domain.delivery import Part
from tests.fakes.telegram.text import with_found
from tests.support.requirement import requirement

RENDERER = TelegramRenderer()


def mentions(part: Part) -> list[str]:
    """What Telegram makes a mention of in a message, its own finds included."""
    entities = Payload.from_json(part.payload).entities
    given = [{"type": e.type, "offset": e.offset, "length": e.length} for e in entities]
    raw = part.body.encode("utf-16-le")
    return [
        raw[2 * found["offset"] : 2 * (found["offset"] + found["length"])].decode("utf-16-le")
        for found in with_found(part.body, given)
        if found["type"] in ("mention", "text_mention")
    ]


def shown(markdown: str) -> str:
    return "".join(part.body for part in RENDERER.text(markdown))


def test_the_judge_of_these_tests_sees_a_mention() -> None:
    assert mentions(Part(kind=RENDERER.text("x")[0].kind, body="ask @ana_b, (@bob)")) == [
        "@ana_b",
        "@bob",
    ]


@requirement("threat.s23")
@pytest.mark.parametrize(
    "markdown",
    [
        "ask @ana_b",
        "**@ana_b**, @**bob** and @*ann*a",
        "(@ana_b) \u00e9@bob \U0001f44d@carl",
        "[@ana_b](tg://user?id=5)",
        "| who |\n|---|\n| @ana_b |",
        "> @ana_b",
        "https://@ana_b",
        "<@ana_b>",
        "`a`@ana_b`b`",
        "@everyone @here @channel",
        "`http://a.example/`https://b.example/@bobby",
        "https://b.example/@bobby`c`",
    ],
)
def test_a_name_looks_the_same_and_notifies_nobody(markdown: str) -> None:
    parts = RENDERER.text(markdown)

    assert [mentions(part) for part in parts] == [[]]
    plain = shown(markdown).replace(JOINER, "")
    assert plain == shown(markdown.replace("@", "\u00a7")).replace("\u00a7", "@")


@pytest.mark.parametrize(
    "text",
    [
        "write to ana@example.com",
        "see https://social.example/@ana_b/1?x=@y#@z.",
        "`pip install @scope/name`",
        "```\n@decorator\n```",
        "meet @ 5",
    ],
)
def test_what_is_no_name_stays_as_it_is(text: str) -> None:
    assert JOINER not in shown(text)


def test_what_a_link_is_called_stays_as_it_is() -> None:
    (part,) = RENDERER.text("[@ana_b](https://a.example/)")

    assert JOINER not in part.body
    assert mentions(part) == []


@requirement("threat.s23")
def test_a_cut_makes_no_mention_of_what_was_none() -> None:
    address = "https://a.example/" + "@anna/" * 1_500
    word = ("x" * 4_015 + "@bob ") * 3

    for text in (address, word):
        parts = RENDERER.text(text)
        assert len(parts) > 1
        assert [mentions(part) for part in parts] == [[]] * len(parts)
        assert max(units(part.body) for part in parts) <= MAX_TEXT
        whole = "".join(part.body for part in parts).replace(JOINER, "")
        assert whole.replace(" ", "") == text.replace(" ", "")


def test_looks_stay_over_what_they_were_over() -> None:
    text = "\U0001f44d @ana @bob @carl"
    bold = Entity(type="bold", offset=8, length=4)

    found = quiet(Rich(text=text, entities=(bold,)))

    raw = found.text.encode("utf-16-le")
    (entity,) = found.entities
    assert raw[2 * entity.offset : 2 * entity.end].decode("utf-16-le") == f"@{JOINER}bob"
    assert quiet(found) is found
    assert quieted(text) == found.text
