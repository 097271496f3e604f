"""What a form shows at each step: a field, the review, or which field to edit. Pure.

A `Prompt` names its buttons by action and argument; tokens, time and layout belong to others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.domain.form import FieldKind, Form, FormField, FormState, Unset
from gateway.domain.question import Action
from gateway.domain.text import shorten
from gateway.runtime.forms.values import describe, list_of, render_value

PAGE: Final = 8
"""Options on one card."""

MAX_LABEL: Final = 60
MAX_OPTION: Final = 300
"""A platform whose buttons hold less shows the whole label beside them."""
REVIEW: Final = ""
"""`FormState.field` of the review."""

_NAMELESS: Final = "(value)"
_TYPED: Final = frozenset(FieldKind) - {FieldKind.BOOLEAN, FieldKind.CHOICE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A button before it has a token; `argument` says what a press means."""

    action: Action
    label: str
    argument: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One card of a form; `reply` is the argument of a typed answer to `field`, None without one.

    `state` is how far a form is one field of which is asked, `problem` why the last answer was none.
    """

    text: str
    choices: tuple[Choice, ...]
    field: str = ""
    hint: str = ""
    reply: Mapping[str, object] | None = None
    state: FormState | None = None
    problem: str = ""


def key_of(item: FormField) -> str:
    """Return the name a field has in `FormState`, where "" is the review."""
    return item.name or _NAMELESS


def find_asked(form: Form, key: str) -> FormField | None:
    """Return the field of that key, or None for the review."""
    return next((item for item in form.fields if key_of(item) == key), None)


def next_field(form: Form, state: FormState) -> str:
    """Return the key of the first field that is neither answered nor skipped, `REVIEW` after the last."""
    for item in form.fields:
        key = key_of(item)
        if key not in state.answers and key not in state.skipped:
            return key
    return REVIEW


def content_of(form: Form, state: FormState) -> Mapping[str, object]:
    """Return the answers by field name; optional fields that were skipped are absent."""
    return {
        item.name: state.answers[key_of(item)]
        for item in form.fields
        if key_of(item) in state.answers and key_of(item) not in state.skipped
    }


def state_of(form: Form, content: Mapping[str, object]) -> FormState:
    """Return the state of a form that holds this content; what is absent was left out."""
    given = {key_of(item): content[item.name] for item in form.fields if item.name in content}
    left_out = frozenset(key_of(item) for item in form.fields if item.name not in content)
    return FormState(rev=0, field=REVIEW, answers=given, skipped=left_out)


def field_prompt(
    form: Form, asked: FormField, state: FormState, *, page: int = 0, problem: str = ""
) -> Prompt:
    """Return the card that asks one field; `problem` says why the last answer was none."""
    typed = asked.kind in _TYPED
    argument: dict[str, object] = {"field": key_of(asked), "rev": state.rev}
    if page:
        argument["page"] = page
    return Prompt(
        text=_field_text(form, asked, state, problem),
        choices=(
            *_options(asked, state, argument, page),
            *_shortcuts(asked, state, argument),
            *_ways_out(state),
        ),
        field=key_of(asked) if typed else "",
        hint=describe(asked) if typed else "",
        reply=argument if typed else None,
        state=state,
        problem=problem,
    )


def wants_modal(form: Form, prompt: Prompt) -> bool:
    """Whether a native form asks better than a card: not where one press is all it takes."""
    if prompt.state is None:
        return False
    alone = form.fields[0] if len(form.fields) == 1 else None
    return alone is None or alone.kind in _TYPED or len(alone.options) > PAGE


def modal_prompt(form: Form, prompt: Prompt) -> Prompt:
    """Return the card from which a native form opens, in the place of one that asks a field."""
    state = prompt.state or FormState(rev=0, field=REVIEW)
    answer = Choice(
        action=Action.ANSWER, label="Answer", argument={"field": state.field, "rev": state.rev}
    )
    asked = [_asked_for(item) for item in form.fields]
    return replace(
        prompt,
        text="\n\n".join(part for part in (form.message, prompt.problem, "\n".join(asked)) if part),
        choices=(answer, *_ways_out(state)),
        field="",
        hint="",
        reply=None,
    )


def _asked_for(item: FormField) -> str:
    line = item.label if item.required else f"{item.label} (optional)"
    long = [option.label for option in item.options if len(option.label) > MAX_LABEL]
    return "\n".join([line, *(_numbered(item) if long else ())])


def _numbered(item: FormField) -> Sequence[str]:
    return [f"{number}. {option.label}" for number, option in enumerate(item.options, 1)]


def pick_prompt(form: Form, state: FormState, *, page: int = 0) -> Prompt:
    """Return the card of a plain choice: a press on an option settles it."""
    asked = form.fields[0]
    argument = {"field": key_of(asked), "rev": state.rev}
    labels = [option.label for option in asked.options]
    picks = [
        Choice(
            action=Action.SUBMIT,
            label=shorten(labels[index], MAX_OPTION),
            argument=argument | {"option": index},
        )
        for index in _shown(len(labels), page)
    ]
    cancel = Choice(action=Action.CANCEL, label="Cancel", argument={"rev": state.rev})
    return Prompt(text=form.message, choices=(*picks, *_more(len(labels), page, argument), cancel))


def review_prompt(form: Form, state: FormState) -> Prompt:
    """Return the card that comes before sending: all fields with their values."""
    rev = {"rev": state.rev}
    edit = Choice(action=Action.EDIT, label="Edit", argument=rev)
    return Prompt(
        text=review_text(form, state),
        choices=(
            Choice(action=Action.SUBMIT, label="Submit", argument=rev),
            *((edit,) if form.fields else ()),
            *_ways_out(state),
        ),
    )


def as_link(prompt: Prompt) -> Prompt:
    """Return the review of a form without fields as the question whether to open a link."""
    choices = tuple(
        replace(choice, label="Open link") if choice.action is Action.SUBMIT else choice
        for choice in prompt.choices
    )
    return replace(prompt, choices=choices)


def edit_prompt(form: Form, state: FormState, *, page: int = 0) -> Prompt:
    """Return the card that asks which field to change."""
    argument: dict[str, object] = {"rev": state.rev, "edit": True}
    fields = [
        Choice(
            action=Action.EDIT,
            label=shorten(form.fields[index].label, MAX_LABEL),
            argument={"rev": state.rev, "field": key_of(form.fields[index])},
        )
        for index in _shown(len(form.fields), page)
    ]
    back = Choice(action=Action.EDIT, label="Back", argument={"rev": state.rev, "field": REVIEW})
    return Prompt(
        text=f"{review_text(form, state)}\n\nWhich field should change?",
        choices=(*fields, *_more(len(form.fields), page, argument), back),
    )


def review_text(form: Form, state: FormState) -> str:
    """Return the message and every field with its value."""
    lines = [f"{item.label}: {_value_text(item, state)}" for item in form.fields]
    return "\n\n".join(part for part in (form.message, "\n".join(lines)) if part)


def shown_options(asked: FormField, page: int) -> range:
    """Return the indexes of the options on a page."""
    return _shown(len(asked.options), page)


# --- parts of a card --------------------------------------------------------------


def _field_text(form: Form, asked: FormField, state: FormState, problem: str) -> str:
    keys = [key_of(item) for item in form.fields]
    notes = [f"{keys.index(key_of(asked)) + 1} of {len(keys)}"] if len(keys) > 1 else []
    notes += [] if asked.required else ["optional"]
    title = asked.label + (f" ({', '.join(notes)})" if notes else "")
    given = key_of(asked) in state.answers and asked.kind is not FieldKind.MULTI
    now = f"Now: {_value_text(asked, state)}" if given else ""
    return "\n\n".join(part for part in (form.message, problem, title, asked.help, now) if part)


def _value_text(item: FormField, state: FormState) -> str:
    key = key_of(item)
    if key in state.skipped or key not in state.answers:
        return "(left out)"
    return render_value(item, state.answers[key])


def _options(
    asked: FormField, state: FormState, argument: Mapping[str, object], page: int
) -> Sequence[Choice]:
    if asked.kind is FieldKind.BOOLEAN:
        return [
            Choice(action=Action.PICK, label="Yes", argument={**argument, "option": 0}),
            Choice(action=Action.PICK, label="No", argument={**argument, "option": 1}),
        ]
    if asked.kind not in {FieldKind.CHOICE, FieldKind.MULTI}:
        return []
    several = asked.kind is FieldKind.MULTI
    chosen = chosen_options(asked, state) if several else frozenset[int]()
    shown = [
        Choice(
            action=Action.TOGGLE if several else Action.PICK,
            label=_option_label(asked, index, chosen) if several else _label(asked, index),
            argument={**argument, "option": index},
        )
        for index in shown_options(asked, page)
    ]
    done = Choice(action=Action.PICK, label="Done", argument={**argument, "done": True})
    more = _more(len(asked.options), page, argument)
    return [*shown, *more, *([done] if several else [])]


def chosen_options(asked: FormField, state: FormState) -> frozenset[int]:
    """Return the indexes of a list's options that are chosen so far."""
    if key_of(asked) in state.skipped:
        return frozenset()
    # `True == 1`: the type tells constants apart that are equal only in Python.
    taken = [(type(value), value) for value in list_of(state.answers.get(key_of(asked)))]
    return frozenset(
        index
        for index, option in enumerate(asked.options)
        if (type(option.value), option.value) in taken
    )


def _label(asked: FormField, index: int) -> str:
    return shorten(asked.options[index].label, MAX_OPTION)


def _option_label(asked: FormField, index: int, chosen: frozenset[int]) -> str:
    return f"{'[x]' if index in chosen else '[ ]'} {_label(asked, index)}"


def _shown(count: int, page: int) -> range:
    return range(min(page * PAGE, count), min(page * PAGE + PAGE, count))


def _more(count: int, page: int, argument: Mapping[str, object]) -> Sequence[Choice]:
    pages = -(-count // PAGE)
    if pages < 2:
        return []
    label = f"More (page {page + 1} of {pages})"
    following = {**argument, "page": (page + 1) % pages}
    return [Choice(action=Action.SHOW_FULL, label=label, argument=following)]


def _shortcuts(
    asked: FormField, state: FormState, argument: Mapping[str, object]
) -> Sequence[Choice]:
    found: list[Choice] = []
    if key_of(asked) in state.answers and asked.kind is not FieldKind.MULTI:
        keep = {**argument, "keep": True}
        found.append(Choice(action=Action.ANSWER, label="Keep it", argument=keep))
    if not isinstance(asked.default, Unset):
        label = shorten(f"Use default: {render_value(asked, asked.default)}", MAX_LABEL)
        default = {**argument, "default": True}
        found.append(Choice(action=Action.ANSWER, label=label, argument=default))
    if not asked.required:
        found.append(Choice(action=Action.SKIP, label="Skip", argument=argument))
    return found


def _ways_out(state: FormState) -> tuple[Choice, Choice]:
    rev = {"rev": state.rev}
    return (
        Choice(action=Action.DECLINE, label="Decline", argument=rev),
        Choice(action=Action.CANCEL, label="Cancel", argument=rev),
    )
