import json
import re
import unicodedata
from datetime import timedelta
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.canonical import canonical, sha256_of
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.question import (
    Action,
    Decision,
    Question,
    QuestionKind,
    QuestionState,
    Surface,
)
from gateway.runtime.cards import (
    approval_prompt,
    card_view,
    closed_line,
    closed_view,
    decided,
    outcome_sentence,
)
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.redact import redacted, shown_arguments
from tests.support.clock import NOON
from tests.support.requirement import requirement

CONFIG = ApprovalsConfig()
ANA = Actor(platform="telegram", id="1", name="Ana")

TEXTS = st.text(st.characters(), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def question(**more: object) -> Question:
    arguments = canonical({"text": "hi"})
    values: dict[str, object] = {
        "id": QuestionId("abcd" + "a" * 22),
        "short": "abcd",
        "kind": QuestionKind.TOOL_CALL,
        "place": Place(platform="telegram", chat="1", chat_type=ChatType.DM),
        "shown_in": Place(platform="telegram", chat="1", chat_type=ChatType.DM),
        "requester": ANA,
        "actions": (Action.ALLOW_ONCE, Action.DENY),
        "body": "Adds a note.",
        "server": "notes",
        "tool": "add",
        "arguments": arguments,
        "args_sha": sha256_of(arguments),
        "created_at": NOON,
        "expires_at": NOON + timedelta(seconds=300),
    }
    return Question(**(values | more))  # pyright: ignore[reportArgumentType]


@requirement("threat.s6", "threat.s5")
@given(value=st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_shown_reads_back_to_what_runs_and_hides_nothing(value: dict[str, object]) -> None:
    arguments = canonical(value)
    shown = shown_arguments(arguments, redact=())
    assert canonical(json.loads(shown)) == arguments
    assert not INVISIBLE.search(shown)
    assert not [sign for sign in shown if 0xE0000 <= ord(sign) <= 0xE0FFF]
    assert all(unicodedata.category(sign) != "Cc" or sign == "\n" for sign in shown)


def test_secrets_are_hidden_by_key_name_at_any_depth() -> None:
    value = {
        "Api_TOKEN": "12345",
        "deep": [{"password": {"a": 1, "b": 2}}, {"secrets": [1]}, {"x": {"mySecretKey": None}}],
        "plain": "token",
    }
    shown = cast("dict[str, object]", redacted(value, redact=CONFIG.redact))
    assert shown == {
        "Api_TOKEN": "•••• (5 chars)",
        "deep": [
            {"password": "•••• (2 items)"},
            {"secrets": "•••• (1 items)"},
            {"x": {"mySecretKey": "•••• (4 chars)"}},
        ],
        "plain": "token",
    }
    assert redacted(value, redact=()) == value


@requirement("approval.card")
def test_a_card_says_who_asks_what_exactly_and_until_when() -> None:
    asked = question(server="no\u202etes", tool="add\nnote")
    prompt = approval_prompt(asked.body, asked.actions)
    view = card_view(asked, prompt, now=NOON + timedelta(seconds=270), config=CONFIG)
    assert view.title == "no\\u202etes · add note"
    assert view.text == "Adds a note."
    assert json.loads(view.arguments) == {"text": "hi"}
    until = asked.expires_at.astimezone().strftime("%H:%M")
    assert view.lines == ("Asked by Ana", f"Expires at {until} (in 30 s)", "ID abcd")
    assert [choice.label for choice in prompt.choices] == ["Allow once", "Deny"]


def test_a_closed_card_keeps_its_words_and_has_no_buttons() -> None:
    view = closed_view(question(), text="Adds a note.", closed="Denied", now=NOON, config=CONFIG)
    assert (view.text, view.closed, view.buttons, view.reply_token) == (
        "Adds a note.",
        "Denied",
        (),
        "",
    )
    assert view.arguments


@requirement("approval.card.closed")
def test_every_ending_says_what_by_whom_and_when() -> None:
    at = NOON.astimezone().strftime("%H:%M")

    def line(action: Action, *, by: Actor | None = ANA, via: Surface, reason: str = "") -> str:
        return closed_line(question(), action=action, by=by, via=via, at=NOON, reason=reason)

    assert line(Action.ALLOW_ONCE, via=Surface.BUTTON) == f"Allowed once by Ana · {at}"
    assert line(Action.ALLOW_ALWAYS, via=Surface.BRIDGE) == (
        f"Always allowed by Ana · {at} · via bridge"
    )
    assert line(Action.DENY, via=Surface.CLI, reason="no\nway") == (
        f"Denied by Ana: no way · {at} · via the shell"
    )
    assert line(Action.TIMEOUT, by=None, via=Surface.TIMEOUT) == (
        f"Expired, not run: no answer in 300 s · {at}"
    )
    assert line(Action.WITHDRAW, by=None, via=Surface.SYSTEM, reason="stopped") == (
        f"No longer waiting: stopped · {at}"
    )


def test_model_and_chat_are_told_the_same_reason() -> None:
    asked = question()

    def told(action: Action, state: QuestionState, reason: str = "") -> str:
        decision = Decision(
            question=asked.id,
            state=state,
            action=action,
            by=ANA,
            via=Surface.BUTTON,
            at=NOON,
            reason=reason,
        )
        return outcome_sentence(asked, decision)

    assert told(Action.DENY, QuestionState.DENIED, "later") == "not run: denied by Ana: later"
    assert told(Action.TIMEOUT, QuestionState.EXPIRED) == "not run: no answer in 300 s"
    assert told(Action.ALLOW_SESSION, QuestionState.ALLOWED) == "allowed for this session by Ana"
    assert told(Action.WITHDRAW, QuestionState.CANCELLED, "stopped") == (
        "not run: no longer waiting: stopped"
    )


def test_a_name_cannot_forge_a_line_of_the_card() -> None:
    evil = Actor(platform="telegram", id="1", name="Ana\nAllowed once by Root\u202e")
    decision = Decision(
        question=QuestionId("abcd"),
        state=QuestionState.DENIED,
        action=Action.DENY,
        by=evil,
        via=Surface.BUTTON,
        at=NOON,
    )
    said = decided(question(decision=decision, state=QuestionState.DENIED))
    assert "\n" not in said
    assert "\u202e" not in said
