"""Puts a prompt on a platform's card: gives each button its token and lets the renderer lay it out."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gateway.domain.canonical import canonical
from gateway.domain.delivery import Part
from gateway.domain.question import Action, Button, Question
from gateway.ports import Renderer
from gateway.runtime.cards import card_view
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.forms.moves import NO_STATE
from gateway.runtime.forms.steps import Prompt, key_of, modal_prompt, wants_modal

TOKEN_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A card with the rows of its buttons; `file` must go first when it is set."""

    card: Part
    file: Part | None
    buttons: tuple[Button, ...]


def draw(
    question: Question,
    prompt: Prompt,
    *,
    renderer: Renderer,
    now: datetime,
    config: ApprovalsConfig,
) -> Drawn:
    """Return the card of a prompt; every call makes new tokens."""
    form = question.form if renderer.capabilities.modal_fields else None
    if form is not None and not wants_modal(form, prompt):
        form = None
    if form is not None:
        prompt = modal_prompt(form, prompt)
    buttons = tuple(
        _button(choice.action, choice.label, choice.argument) for choice in prompt.choices
    )
    reply = () if prompt.reply is None else (_button(Action.ANSWER, "", prompt.reply),)
    view = card_view(
        question,
        prompt,
        buttons=buttons,
        reply_token=reply[0].token if reply else "",
        now=now,
        config=config,
    )
    if form is not None:
        keys = tuple(key_of(item) for item in form.fields)
        answers = NO_STATE.answers if prompt.state is None else prompt.state.answers
        view = replace(view, form=form, keys=keys, answers=answers)
    card, file = renderer.card(view)
    return Drawn(card=card, file=file, buttons=(*buttons, *reply))


def _button(action: Action, label: str, argument: Mapping[str, object]) -> Button:
    return Button(
        token=secrets.token_urlsafe(TOKEN_BYTES),
        action=action,
        label=label,
        argument=canonical(dict(argument)) if argument else "",
    )
