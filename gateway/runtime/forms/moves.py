"""What an answer does to a form: move it to its next step, or end it. Pure; the store decides who was first."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from gateway.domain.form import FieldKind, Form, FormField, FormState, Unset
from gateway.domain.question import Action, Button
from gateway.runtime.forms import steps
from gateway.runtime.forms.answers import (
    Invalid,
    Reading,
    Valid,
    read_chosen,
    read_list,
    read_several,
    read_text,
)
from gateway.runtime.forms.steps import Prompt, key_of

NO_STATE: Final = FormState(rev=0, field=steps.REVIEW)
"""Of a form that is not asked field by field."""


_NOTHING: Final = Prompt(text="", choices=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Take `value` (or the omission, or nothing when `keep`) for `field`, then show `prompt`.

    `others` are fields that were answered along with it, `left_out` those that were omitted.
    """

    field: str
    next: str = steps.REVIEW
    prompt: Prompt = _NOTHING
    value: object = None
    skip: bool = False
    keep: bool = False
    others: Mapping[str, object] = dataclasses.field(default_factory=dict[str, object])
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The form is submitted with this content."""

    content: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMove:
    """Nothing changes; `reason` is for the person alone."""

    reason: str


Outcome: TypeAlias = Move | Finish | NoMove

_OLDER: Final = NoMove(reason="That card is older; please use the newest one of this question.")
_UNCLEAR: Final = NoMove(reason="That button does nothing here.")


def start(form: Form) -> tuple[FormState, Prompt]:
    """Return the state a form begins in, and its first card."""
    state = FormState(rev=0, field=steps.next_field(form, NO_STATE))
    return state, prompt_of(form, state)


def prompt_of(form: Form, state: FormState) -> Prompt:
    """Return the card of a step as it is first shown."""
    asked = steps.find_asked(form, state.field)
    return (
        steps.review_prompt(form, state)
        if asked is None
        else steps.field_prompt(form, asked, state)
    )


def press(form: Form, state: FormState, button: Button, *, pick: bool) -> Outcome:
    """Say what a button of a form means; `pick`: the form is a plain choice."""
    argument = read_argument(button.argument)
    if argument.get("rev", state.rev) != state.rev:
        return _OLDER
    if button.action is Action.SHOW_FULL:
        return _turn_page(form, state, argument, pick=pick)
    if pick:
        return _pick(form.fields[0], argument) if button.action is Action.SUBMIT else _UNCLEAR
    if button.action is Action.SUBMIT:
        return _submit(form, state)
    if button.action is Action.EDIT:
        return _edit(form, state, argument)
    asked = steps.find_asked(form, state.field)
    if asked is None or argument.get("field") != state.field:
        return _OLDER
    return _field_press(form, state, asked, button.action, argument)


def typed(
    form: Form, state: FormState, argument: Mapping[str, object], texts: str | Sequence[str]
) -> Outcome:
    """Say what a typed answer to the asked field means."""
    asked = steps.find_asked(form, state.field)
    if asked is None or argument.get("field") != state.field or argument.get("rev") != state.rev:
        return _OLDER
    page = _page(argument)
    if isinstance(texts, str):
        reading = _read_typed(form, asked, state, texts, page)
    else:
        reading = read_several(asked, texts)
    return _taken(form, state, asked, reading, page=page)


def submitted(
    form: Form,
    state: FormState,
    argument: Mapping[str, object],
    values: Mapping[str, str | Sequence[str]],
) -> Outcome:
    """Say what the answers of a native form mean, all of them at once; the asked one is among them.

    What is wrong is asked again, the first of it first; the others are taken as they are.
    """
    here = values.get(state.field)
    if here is None:
        return _OLDER
    if len(values) == 1 and here:
        return typed(form, state, argument, here)
    if argument.get("field") != state.field or argument.get("rev") != state.rev:
        return _OLDER
    taken: dict[str, object] = {}
    left_out: set[str] = set()
    wrong: list[tuple[FormField, str]] = []
    for item in (item for item in form.fields if key_of(item) in values):
        given = values[key_of(item)]
        if not given and not item.required:
            left_out.add(key_of(item))
            continue
        reading = read_text(item, given) if isinstance(given, str) else read_several(item, given)
        if isinstance(reading, Invalid):
            wrong.append((item, f"{item.label}: {reading.reason}"))
        else:
            taken[key_of(item)] = reading.value
    asked = key_of(wrong[0][0]) if wrong else state.field
    move = Move(
        field=asked,
        next=asked,
        value=taken.get(asked),
        skip=asked in left_out,
        keep=bool(wrong),
        others={key: value for key, value in taken.items() if key != asked},
        left_out=frozenset(left_out - {asked}),
    )
    if not wrong:
        return _go(form, state, move, to=steps.next_field(form, after(state, move)))
    item, problem = wrong[0]
    prompt = steps.field_prompt(form, item, after(state, move), problem=problem)
    return replace(move, prompt=prompt)


def after(state: FormState, move: Move) -> FormState:
    """Return the state a move leads to, as the store will write it."""
    answers, skipped = dict(state.answers), set(state.skipped)
    if not move.keep:
        answers.pop(move.field, None)
        skipped.discard(move.field)
        if move.skip:
            skipped.add(move.field)
        else:
            answers[move.field] = move.value
    for key in move.others.keys() | move.left_out:
        answers.pop(key, None)
        skipped.discard(key)
    answers.update(move.others)
    skipped |= move.left_out
    return FormState(
        rev=state.rev + 1, field=move.next, answers=answers, skipped=frozenset(skipped)
    )


def read_argument(text: str) -> Mapping[str, object]:
    """Return a button's argument."""
    return cast("Mapping[str, object]", json.loads(text)) if text else {}


# --- one field ------------------------------------------------------------------


def _field_press(
    form: Form, state: FormState, asked: FormField, action: Action, argument: Mapping[str, object]
) -> Outcome:
    match action:
        case Action.SKIP if not asked.required:
            return _answer(form, state, asked, skip=True)
        case Action.ANSWER if "default" in argument and not isinstance(asked.default, Unset):
            return _answer(form, state, asked, value=asked.default)
        case Action.ANSWER if "keep" in argument:
            return _keep(form, state, steps.next_field(form, state))
        case Action.TOGGLE if asked.kind is FieldKind.MULTI:
            return _toggle(form, state, asked, argument)
        case Action.PICK if "done" in argument and asked.kind is FieldKind.MULTI:
            chosen = steps.chosen_options(asked, state)
            return _taken(form, state, asked, read_chosen(asked, tuple(chosen)), page=0)
        case Action.PICK:
            return _picked(form, state, asked, argument)
        case _:
            return _UNCLEAR


def _picked(
    form: Form, state: FormState, asked: FormField, argument: Mapping[str, object]
) -> Outcome:
    index = argument.get("option")
    if asked.kind is FieldKind.BOOLEAN and index in {0, 1}:
        return _answer(form, state, asked, value=index == 0)
    if asked.kind is FieldKind.CHOICE and isinstance(index, int) and index < len(asked.options):
        return _answer(form, state, asked, value=asked.options[index].value)
    return _UNCLEAR


def _toggle(
    form: Form, state: FormState, asked: FormField, argument: Mapping[str, object]
) -> Outcome:
    index = argument.get("option")
    if not isinstance(index, int) or index >= len(asked.options):
        return _UNCLEAR
    chosen = steps.chosen_options(asked, state) ^ {index}
    values = [option.value for n, option in enumerate(asked.options) if n in chosen]
    return _shown(form, state, asked, value=values, page=_page(argument))


def _read_typed(form: Form, asked: FormField, state: FormState, text: str, page: int) -> Reading:
    if form.root:
        reading = read_text(asked, text)
        if isinstance(reading, Valid) and not isinstance(reading.value, dict):
            return Invalid(reason='Please write a JSON object, such as {"name": "value"}.')
        return reading
    if asked.kind is not FieldKind.MULTI:
        return read_text(asked, text)
    # Numbers mean what the card shows: its own page of the options.
    shown = steps.shown_options(asked, page)
    elsewhere = [index for index in steps.chosen_options(asked, state) if index not in shown]
    return read_list(asked, text, shown=shown, besides=elsewhere)


def _taken(
    form: Form, state: FormState, asked: FormField, reading: Reading, *, page: int
) -> Outcome:
    if isinstance(reading, Invalid):
        return _shown(form, state, asked, page=page, problem=reading.reason, keep=True)
    return _answer(form, state, asked, value=reading.value)


def _answer(
    form: Form, state: FormState, asked: FormField, *, value: object = None, skip: bool = False
) -> Move:
    move = Move(field=key_of(asked), value=value, skip=skip)
    return _go(form, state, move, to=steps.next_field(form, after(state, move)))


def _keep(form: Form, state: FormState, following: str) -> Move:
    return _go(form, state, Move(field=state.field, keep=True), to=following)


def _go(form: Form, state: FormState, move: Move, *, to: str) -> Move:
    moved = replace(move, next=to)
    return replace(moved, prompt=prompt_of(form, after(state, moved)))


def _shown(
    form: Form,
    state: FormState,
    asked: FormField,
    *,
    value: object = None,
    page: int = 0,
    problem: str = "",
    keep: bool = False,
) -> Move:
    move = Move(field=key_of(asked), next=key_of(asked), value=value, keep=keep)
    prompt = steps.field_prompt(form, asked, after(state, move), page=page, problem=problem)
    return replace(move, prompt=prompt)


# --- the whole form ---------------------------------------------------------------


def _turn_page(
    form: Form, state: FormState, argument: Mapping[str, object], *, pick: bool
) -> Outcome:
    move = Move(field=state.field, next=state.field, keep=True)
    moved, page = after(state, move), _page(argument)
    asked = steps.find_asked(form, state.field)
    if pick:
        return replace(move, prompt=steps.pick_prompt(form, moved, page=page))
    if "edit" in argument:
        return replace(move, prompt=steps.edit_prompt(form, moved, page=page))
    if asked is None:
        return _OLDER
    return replace(move, prompt=steps.field_prompt(form, asked, moved, page=page))


def _edit(form: Form, state: FormState, argument: Mapping[str, object]) -> Outcome:
    if state.field != steps.REVIEW or not form.fields:
        return _OLDER
    wanted = argument.get("field")
    if wanted == steps.REVIEW or steps.find_asked(form, str(wanted)):
        return _keep(form, state, str(wanted))
    if len(form.fields) == 1:
        return _keep(form, state, key_of(form.fields[0]))
    move = Move(field=steps.REVIEW, keep=True)
    return replace(move, prompt=steps.edit_prompt(form, after(state, move)))


def _submit(form: Form, state: FormState) -> Outcome:
    if steps.next_field(form, state) != steps.REVIEW or state.field != steps.REVIEW:
        return _OLDER
    return Finish(content=steps.content_of(form, state))


def _pick(asked: FormField, argument: Mapping[str, object]) -> Outcome:
    index = argument.get("option")
    if not isinstance(index, int) or index >= len(asked.options):
        return _UNCLEAR
    return Finish(content={asked.name: asked.options[index].value})


def _page(argument: Mapping[str, object]) -> int:
    page = argument.get("page", 0)
    return page if isinstance(page, int) else 0
