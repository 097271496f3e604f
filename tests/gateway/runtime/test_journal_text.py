import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.canonical import canonical
from gateway.domain.model import Finish, FunctionCall, ModelReply, Usage
from gateway.domain.tools import CallState
from gateway.runtime.journal_text import (
    MAX_ANSWER_BYTES,
    Answer,
    TimedReply,
    answer_from_json,
    answer_to_json,
    capped,
    reply_from_json,
    reply_to_json,
)

TEXT = st.text(alphabet=st.characters(), max_size=50)


@given(text=TEXT, name=TEXT, problem=TEXT, tokens=st.integers(0, 2**40))
def test_a_reply_comes_back_as_it_was(text: str, name: str, problem: str, tokens: int) -> None:
    call = FunctionCall(id="c", name=name, arguments=canonical({"a": text}), problem=problem)
    reply = ModelReply(
        text=text,
        calls=(call,),
        usage=Usage(input_tokens=tokens, output_tokens=1),
        finish=Finish.TOOLS,
        model="m",
    )

    assert reply_from_json(reply_to_json(TimedReply(reply=reply, ms=3))) == TimedReply(
        reply=reply, ms=3
    )


@given(text=TEXT)
def test_an_answer_comes_back_as_it_was(text: str) -> None:
    answer = Answer(name="mcp__demo__x", state=CallState.UNKNOWN, text=text)

    assert answer_from_json(answer_to_json(answer)) == answer


def test_an_answer_over_the_cap_is_cut_and_says_how_much_is_missing() -> None:
    cut = capped("é" * MAX_ANSWER_BYTES)

    assert len(cut.encode()) < MAX_ANSWER_BYTES + 100
    assert cut.endswith(f"[cut: {MAX_ANSWER_BYTES} of {2 * MAX_ANSWER_BYTES} bytes left out]")
    assert capped("short") == "short"
    assert json.loads(answer_to_json(Answer(state=CallState.OK, text=cut)))["text"]
