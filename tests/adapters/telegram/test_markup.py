import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.markup import MAX_INLINE, TelegramRenderer
from adapters.telegram.payload import Payload
from adapters.telegram.rich import MAX_ENTITIES, MAX_TEXT, Entity, Rich, split, units
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.ids import QuestionId
from gateway.domain.question import Action, Button
from gateway.ports import CardView
from tests.support.requirement import requirement

RENDERER = TelegramRenderer()
WORDS = st.text(st.sampled_from("abcdefgh  .,!?👍é漢\n"), min_size=1, max_size=60)


def show(markdown: str) -> str:
    """What people read, the messages put together."""
    return "\n".join(part.body for part in RENDERER.text(markdown))


def entities(part: Part) -> tuple[Entity, ...]:
    return Payload.from_json(part.payload).entities


def covered(part: Part, entity: Entity) -> str:
    raw = part.body.encode("utf-16-le")
    return raw[2 * entity.offset : 2 * entity.end].decode("utf-16-le")


def looks(markdown: str) -> list[tuple[str, str]]:
    (part,) = RENDERER.text(markdown)
    return [(entity.type, covered(part, entity)) for entity in entities(part)]


def seen(text: str) -> list[str]:
    return [character for character in text if not character.isspace()]


def view(**changes: Any) -> CardView:
    values: dict[str, Any] = {
        "question": QuestionId("q"),
        "short": "k7q2",
        "title": "demo · add",
        "text": "Add a note",
        "arguments": '{\n  "text": "milk"\n}',
        "lines": ("Asked by Ana", "Expires at 14:03 (in 5 min)", "ID k7q2"),
        "buttons": tuple(
            Button(token=letter * 22, action=action, label=label)
            for letter, action, label in (
                ("a", Action.ALLOW_ONCE, "Allow once"),
                ("b", Action.ALLOW_SESSION, "Allow for this session"),
                ("c", Action.ALLOW_ALWAYS, "Always allow"),
                ("d", Action.DENY, "Deny"),
            )
        ),
    }
    return CardView(**values | changes)


# --- replies ----------------------------------------------------------------------


def test_markdown_becomes_text_with_entities_beside_it() -> None:
    text = "# Head\n\n**bold** _it_ ~~gone~~ `x<y`\n\n```python\na = 1\n```\n\n> said"

    assert show(text) == "Head\n\nbold it gone x<y\n\na = 1\n\nsaid"
    assert set(looks(text)) == {
        ("bold", "Head"),
        ("underline", "Head"),
        ("bold", "bold"),
        ("italic", "it"),
        ("strikethrough", "gone"),
        ("code", "x<y"),
        ("pre", "a = 1"),
        ("blockquote", "said"),
    }


@requirement("render.nothing_lost")
@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("a <b>b</b> <script>alert(1)</script>", "a <b>b</b> <script>alert(1)</script>"),
        ("<div>\n*a*\n</div>", "<div>\n*a*\n</div>"),
        ("<!-- said -->", "<!-- said -->"),
        ("hi <!channel>", "hi <!channel>"),
        ("$HOME/$PATH", "$HOME/$PATH"),
        ("true || false || true", "true || false || true"),
        ("~5 to ~6, ~a~", "~5 to ~6, ~a~"),
        ("[unused]: http://example.com", "[unused]: http://example.com"),
        ("2\\*3\\*4 &amp; &lt;x&gt;", "2*3*4 & <x>"),
        ("\ud800 a", "\ufffd a"),
        ("```see this\nx\n```", "see this\nx"),
        ("| a |\n|---|\n| b | more |", "a |     \n--+-----\nb | more"),
    ],
)
def test_what_looks_like_markup_but_says_something_stays(markdown: str, shown: str) -> None:
    assert show(markdown) == shown


@requirement("render.nothing_lost")
@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_every_word_of_a_document_is_shown_in_order(words: list[str], data: st.DataObject) -> None:
    forms = (
        "{0}\n\n", "**{0}** ", "*{0}*\n", "`{0}`\n", "```\n{0}\n```\n", "- {0}\n", "1. {0}\n",
        "> {0}\n\n", "# {0}\n", "<b>{0}</b>", "<div>\n{0}\n</div>\n\n", "| {0} |\n|---|\n| x |\n\n",
    )  # fmt: skip
    document = "".join(
        data.draw(st.sampled_from(forms)).format(word.strip() or "w") for word in words
    )

    letters = [c for c in seen(document) if c.isalpha()]
    assert [c for c in seen(show(document)) if c.isalpha()] == letters


@requirement("render.nothing_lost", "render.never_cuts_pairs")
@given(st.text(st.sampled_from("ab \n👍👩‍👧é"), min_size=1, max_size=400), st.integers(30, 90))
def test_the_pieces_of_a_text_are_the_text(text: str, limit: int) -> None:
    looks = tuple(
        Entity(type="bold", offset=at, length=min(9, units(text) - at))
        for at in range(0, units(text), 7)
    )
    parts = split(Rich(text=text, entities=looks), limit=limit)

    shown = "".join(part.text for part in parts)
    assert [c for c in shown if c.isprintable() and c != " "] == [
        c for c in text if c.isprintable() and c != " "
    ]
    for part in parts:
        assert 0 < units(part.text) <= limit
        part.text.encode()
        assert all(e.offset >= 0 and e.length > 0 for e in part.entities)
        assert all(e.end <= units(part.text) for e in part.entities)


@requirement("case.f1")
def test_4096_exclamation_marks_arrive_whole() -> None:
    parts = RENDERER.text("!" * 4096)

    assert all(units(part.body) <= MAX_TEXT for part in parts)
    assert "".join(part.body for part in parts) == "!" * 4096


@requirement("case.f4", "render.fences")
def test_what_spans_a_cut_goes_on_in_the_next_message() -> None:
    bold = RENDERER.text("word " * 790 + "**" + "bold " * 60 + "end**")
    code = RENDERER.text("```python\n" + "print('hello')\n" * 400 + "```")

    assert [covered(part, entities(part)[0]).split()[0] for part in bold] == ["bold", "bold"]
    assert len(code) == 2
    for part in code:
        (entity,) = entities(part)
        assert (entity.type, entity.language, covered(part, entity)) == ("pre", "python", part.body)


@requirement("case.f6", "render.never_cuts_pairs")
def test_2100_thumbs_make_two_messages_without_a_cut_pair() -> None:
    parts = RENDERER.text("👍" * 2100)

    assert len(parts) == 2
    assert "".join(part.body for part in parts) == "👍" * 2100


@requirement("case.f8")
def test_a_table_is_an_aligned_block() -> None:
    text = "| Name | Age | City |\n|---|---|---|\n| Ana | 30 | Rome |\n| Bo | 4 | Oslo |"

    assert looks(text) == [
        (
            "pre",
            "Name | Age | City\n-----+-----+-----\nAna  | 30  | Rome\nBo   | 4   | Oslo",
        )
    ]


def test_a_message_has_at_most_as_many_entities_as_telegram_keeps() -> None:
    parts = RENDERER.text("**a** b " * 330)

    assert len(parts) > 1
    assert all(len(entities(part)) <= MAX_ENTITIES for part in parts)
    assert sum(len(entities(part)) for part in parts) == 330
    assert seen("".join(part.body for part in parts)) == seen("ab" * 330)


def test_more_nested_looks_than_telegram_keeps_cost_looks_and_no_text() -> None:
    nested = tuple(Entity(type="bold", offset=0, length=n) for n in range(1, 160))

    parts = split(Rich(text="x" * 200, entities=nested))

    assert "".join(part.text for part in parts) == "x" * 200
    assert all(len(part.entities) <= MAX_ENTITIES for part in parts)


@requirement("render.never_empty")
@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\u2060", "\U000e0041\U000e007f", "\u3164"])
def test_what_cannot_be_seen_is_no_message(text: str) -> None:
    assert RENDERER.text(text) == ()


@requirement("security.links_host")
@pytest.mark.parametrize(
    ("markdown", "shown", "linked"),
    [
        ("[docs](https://evil.example/x)", "docs (evil.example)", True),
        ("[good.example](https://evil.example)", "good.example (evil.example)", True),
        ("[https://good.example/](https://evil.example/)",
         "https://good.example/ (evil.example)", True),
        ("[good.example/a](https://good.example/b)", "good.example/a", True),
        ("[x](https://good.example@evil.example/)", "x (evil.example)", True),
        ("[a](https://ex\u0430mple.com)", "a (xn--exmple-4nf.com)", True),
        ("[write](mailto:a@b.example?subject=x)", "write (a@b.example)", True),
        ("![shot](https://img.example/a.png)", "shot (img.example)", True),
        ("[me](tg://user?id=5)", "me", False),
        ("[run](javascript:alert(1))", "run", False),
        ("[file](file:///etc/passwd)", "file", False),
        ("[broken](https://[)", "broken", False),
    ],
)  # fmt: skip
def test_links_show_where_they_lead_and_lead_only_to_pages_and_mail(
    markdown: str, shown: str, linked: bool
) -> None:
    assert show(markdown) == shown
    assert ("text_link" in {look for look, _ in looks(markdown)}) is linked


# --- cards ------------------------------------------------------------------------


def test_a_card_shows_everything_and_its_arguments_as_a_block() -> None:
    card, file = RENDERER.card(view())

    assert file is None
    assert card.kind is DeliveryKind.CARD
    assert card.body == (
        'demo · add\n\nAdd a note\n\n{\n  "text": "milk"\n}\n\n'
        "Asked by Ana\nExpires at 14:03 (in 5 min)\nID k7q2"
    )
    assert [(e.type, covered(card, e)) for e in entities(card)] == [
        ("bold", "demo · add"),
        ("pre", '{\n  "text": "milk"\n}'),
    ]


def test_buttons_carry_a_token_and_nothing_else() -> None:
    card, _ = RENDERER.card(view())

    rows = Payload.from_json(card.payload).rows
    assert [[key.label for key in row] for row in rows] == [
        ["Allow once", "Allow for this session"],
        ["Always allow", "Deny"],
    ]
    assert {len(key.data.encode()) for row in rows for key in row} == {25}


def test_options_stand_one_below_the_other_and_ways_out_share_a_row() -> None:
    choices = [(Action.PICK, "Red"), (Action.PICK, "Green"), (Action.DECLINE, "Decline"),
               (Action.CANCEL, "Cancel")]  # fmt: skip
    buttons = tuple(Button(token="t" * 22, action=act, label=label) for act, label in choices)

    card, _ = RENDERER.card(view(buttons=buttons))

    rows = Payload.from_json(card.payload).rows
    assert [[key.label for key in row] for row in rows] == [
        ["Red"],
        ["Green"],
        ["Decline", "Cancel"],
    ]


@requirement("case.f5")
def test_long_arguments_go_first_as_a_file_and_the_card_says_how_much_is_left() -> None:
    arguments = json.dumps({"text": "x" * 20_000}, indent=2)

    card, file = RENDERER.card(view(arguments=arguments))

    assert file is not None
    assert (file.kind, file.body) == (DeliveryKind.FILE, arguments)
    assert Payload.from_json(file.payload).name == "call-k7q2.json"
    assert f"\n(+{len(arguments) - 1200} chars)" in card.body
    assert card.body.endswith("ID k7q2")


def test_arguments_at_the_cap_are_shown_whole() -> None:
    arguments = "x" * MAX_INLINE

    card, file = RENDERER.card(view(arguments=arguments))

    assert file is None
    assert arguments in card.body


@given(st.text(max_size=30), st.integers(0, 6000), st.integers(0, 4000))
def test_a_card_always_fits_one_message_with_what_must_be_seen(
    text: str, length: int, arguments: int
) -> None:
    shown = view(text=text + "t" * length, arguments="a" * arguments, closed="Denied by Ana")

    for part in (RENDERER.card(shown)[0], RENDERER.closed_card(shown)):
        assert units(part.body) <= MAX_TEXT
        assert "Asked by Ana\n" in part.body
        assert part.body.endswith("Denied by Ana")


def test_a_text_too_long_for_a_card_says_how_much_is_left_out() -> None:
    card, _ = RENDERER.card(view(text="§" * 6000))

    shown = card.body.count("§")
    assert f"§… (+{6000 - shown} chars)\n" in card.body
    assert shown > 3000


@requirement("threat.s6")
def test_text_that_steers_or_hides_is_written_out_on_a_card() -> None:
    hidden = "a\u202eb\u200bc\U000e0041"

    card, _ = RENDERER.card(view(title=hidden, text=hidden, lines=(hidden,)))

    assert not set("\u202e\u200b\U000e0041") & set(card.body)
    assert card.body.count("\\u202e") == 3


def test_a_closed_card_keeps_its_text_and_loses_its_buttons() -> None:
    closed = RENDERER.closed_card(view(buttons=(), closed="Allowed once by Ana · 14:03"))

    assert closed.kind is DeliveryKind.EDIT
    assert closed.body.endswith("ID k7q2\n\nAllowed once by Ana · 14:03")
    assert Payload.from_json(closed.payload).rows == ()


def test_a_card_that_takes_typed_text_carries_what_a_reply_answers() -> None:
    card, _ = RENDERER.card(view(reply_token="r" * 22, field="title", reply_hint="Up to 9 letters"))

    ask = Payload.from_json(card.payload).ask
    assert ask is not None
    assert (ask.token, ask.field, ask.hint) == ("r" * 22, "title", "Up to 9 letters")
    assert card.body.endswith("Reply to this message: Up to 9 letters")
