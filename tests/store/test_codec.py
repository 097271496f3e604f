from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.delivery import Mark
from gateway.domain.form import UNSET, FieldKind, Form, FormField, Option
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import (
    Attachment,
    AttachmentKind,
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from gateway.domain.question import Action, ApproverPolicy, Approvers
from store import codec

# `st.text()` leaves surrogates out unless asked; platforms do not.
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
named = any_text.filter(bool)
moments = st.integers(min_value=-(10**12), max_value=10**14).map(codec.from_ms)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)

places = st.one_of(
    st.builds(
        Place,
        platform=named,
        account=any_text,
        chat=named,
        chat_type=st.sampled_from([ChatType.DM, ChatType.GROUP, ChatType.CHANNEL]),
        participant=any_text,
    ),
    st.builds(
        Place,
        platform=named,
        chat=named,
        chat_type=st.sampled_from([ChatType.THREAD, ChatType.TOPIC]),
        thread=named,
    ),
)
actors = st.builds(Actor, platform=named, id=any_text, name=any_text, is_bot=st.booleans())
frame = {
    "place": places,
    "native_id": any_text,
    "dedupe": any_text,
    "sender": actors,
    "sent_at": moments,
}
toolsets = st.lists(any_text, max_size=2).map(tuple)
attachments = st.builds(
    Attachment,
    kind=st.sampled_from(AttachmentKind),
    media_type=any_text,
    name=any_text,
    size=st.none() | st.integers(min_value=0),
    ref=st.none() | any_text,
)
events: st.SearchStrategy[InboundEvent] = st.one_of(
    st.builds(
        InboundMessage,
        **frame,
        text=any_text,
        attachments=st.lists(attachments, max_size=2).map(tuple),
        reply_to=st.none() | any_text,
        mentions_us=st.booleans(),
        alone=st.booleans(),
        toolsets=toolsets,
    ),
    st.builds(MessageEdited, **frame, edited=any_text, text=any_text),
    st.builds(MessageDeleted, **frame, deleted=any_text),
    st.builds(CommandGiven, **frame, name=any_text, argument=any_text, toolsets=toolsets),
    st.builds(ButtonPressed, **frame, token=any_text, interaction=any_text),
    st.builds(
        FormSubmitted,
        **frame,
        token=any_text,
        interaction=any_text,
        values=st.dictionaries(any_text, any_text | st.lists(any_text, max_size=2).map(tuple)),
    ),
)
fields = st.builds(
    FormField,
    name=any_text,
    kind=st.sampled_from(FieldKind),
    label=any_text,
    help=any_text,
    required=st.booleans(),
    default=st.just(UNSET) | json_values,
    options=st.lists(st.builds(Option, value=json_values, label=any_text), max_size=2).map(tuple),
    minimum=st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    maximum=st.none() | st.integers(),
    pattern=st.none() | any_text,
    schema=st.none() | st.dictionaries(st.text(), json_values, max_size=2),
)
forms = st.builds(
    Form, message=any_text, fields=st.lists(fields, max_size=3).map(tuple), root=st.booleans()
)


@given(events)
def test_every_event_reads_back_as_it_was_whatever_text_it_holds(event: InboundEvent) -> None:
    payload = codec.event_to_json(event)

    assert payload.isascii()
    assert codec.event_from_json(codec.event_kind(event), payload) == event


@given(forms)
def test_every_form_reads_back_as_it_was(form: Form) -> None:
    assert codec.form_from_json(codec.form_to_json(form)) == form


def test_a_default_of_null_is_not_an_absent_default() -> None:
    asked = FormField(name="a", kind=FieldKind.TEXT, label="a", default=None)
    free = FormField(name="b", kind=FieldKind.TEXT, label="b")

    read = codec.form_from_json(codec.form_to_json(Form(message="", fields=(asked, free))))

    assert [field.default for field in read.fields] == [None, UNSET]


@given(any_text)
def test_storable_text_is_utf8_without_nul_and_as_long_as_it_was(text: str) -> None:
    stored = codec.storable(text)

    assert len(stored) == len(text)
    assert "\x00" not in stored
    assert stored.encode("utf-8").decode("utf-8") == stored
    assert codec.readable(stored) == (stored, False)


@given(st.binary(max_size=40))
def test_text_read_from_any_bytes_says_whether_it_is_whole(data: bytes) -> None:
    text, degraded = codec.readable(codec.decode_text(data))

    assert "\x00" not in text
    assert text.encode("utf-8").decode("utf-8") == text
    try:
        whole = "\x00" not in data.decode("utf-8")
    except UnicodeDecodeError:
        whole = False
    assert degraded is not whole


@given(moments)
def test_times_keep_their_millisecond(moment: datetime) -> None:
    assert codec.from_ms(codec.ms(moment)) == moment


def test_a_time_within_a_millisecond_is_rounded_down() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=1999)

    assert codec.ms(moment) % 1000 == 1


def test_a_naive_time_is_refused() -> None:
    naive = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)

    with pytest.raises(TypeError):
        codec.ms(naive)


def test_damaged_approvers_leave_the_decision_to_admins() -> None:
    approvers = Approvers(policy=ApproverPolicy.LIST, ids=("telegram:1", "slack:U2"))

    assert codec.approvers_from_json(codec.approvers_to_json(approvers)) == approvers
    for damaged in ("", "{", "[]", '{"policy":"anyone","ids":[]}', '{"policy":"list"}'):
        assert codec.approvers_from_json(damaged) == Approvers(policy=ApproverPolicy.ADMINS)


def test_damaged_actions_offer_nothing() -> None:
    actions = (Action.ALLOW_ONCE, Action.DENY)

    assert codec.actions_from_json(codec.actions_to_json(actions)) == actions
    assert codec.actions_from_json('["allow-once') == ()
    assert codec.actions_from_json('["allow-all",7,"deny"]') == (Action.DENY,)


@given(st.frozensets(st.sampled_from(Mark)))
def test_marks_read_back(marks: frozenset[Mark]) -> None:
    assert codec.marks_from_text(codec.marks_to_text(marks)) == marks
