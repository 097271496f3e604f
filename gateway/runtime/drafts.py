"""Questions before they have an id: what a tool call, a form or a choice asks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from gateway.domain.canonical import CanonicalJson, canonical, sha256_of
from gateway.domain.form import FieldKind, Form, FormField, Option, Unset
from gateway.domain.question import Action, Approvers, QuestionKind
from gateway.domain.text import shorten, show_escapes
from gateway.domain.tools import ToolCall, ToolSpec
from gateway.ports import FormRequest, SamplingRequest
from gateway.runtime.cards import MAX_DESCRIPTION, approval_prompt, one_line
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.forms import moves, steps
from gateway.runtime.forms.steps import Prompt

PICKED: Final = "choice"
"""The field of a plain choice."""

WANTS_LINK: Final = "Wants you to open a link. Look at its host first; it comes when you agree."

_FORM_ACTIONS: Final = (Action.SUBMIT, Action.DECLINE, Action.CANCEL)
_REQUESTER: Final = Approvers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A question before it has an id; `field` is where a form asked in steps begins."""

    kind: QuestionKind
    call: ToolCall
    actions: tuple[Action, ...]
    body: str
    args_sha: str
    prompt: Prompt
    timeout: float
    approvers: Approvers = _REQUESTER
    quorum: int = 1
    server: str = ""
    server_sha: str = ""
    tool: str = ""
    tool_def_sha: str = ""
    arguments: CanonicalJson | None = None
    form: Form | None = None
    field: str | None = None


def approval_draft(
    call: ToolCall,
    spec: ToolSpec,
    *,
    actions: tuple[Action, ...],
    config: ApprovalsConfig,
    change: str = "",
) -> Draft:
    """Return the question whether a call may run, with the very arguments that will run.

    `change` says how the tool differs from what was allowed before.
    """
    what = shorten(show_escapes(spec.description.strip()), MAX_DESCRIPTION)
    body = "\n\n".join(part for part in (what, change) if part)
    return Draft(
        kind=QuestionKind.TOOL_CALL,
        call=call,
        actions=actions,
        body=body,
        args_sha=sha256_of(call.arguments),
        prompt=approval_prompt(body, actions),
        timeout=config.timeout,
        approvers=config.approvers,
        quorum=config.quorum,
        server=spec.server,
        server_sha=spec.server_sha,
        tool=spec.name,
        tool_def_sha=spec.definition_sha,
        arguments=call.arguments,
    )


def sampling_draft(
    call: ToolCall,
    request: SamplingRequest,
    *,
    actions: tuple[Action, ...],
    config: ApprovalsConfig,
) -> Draft:
    """Return the question whether a server may use our model, with the beginning of what it sent."""
    wrote = shorten(show_escapes(request.excerpt.strip()), MAX_DESCRIPTION)
    body = (
        f"Wants an answer of your model while {one_line(request.tool)} runs. "
        f"Allowing once covers this call. It wrote:\n{wrote}"
    )
    return Draft(
        kind=QuestionKind.SAMPLING,
        call=call,
        actions=actions,
        body=body,
        args_sha=sha256_of(body),
        prompt=approval_prompt(body, actions),
        timeout=config.timeout,
        approvers=config.approvers,
        quorum=config.quorum,
        server=request.server,
        server_sha=request.server_sha,
    )


def form_draft(
    call: ToolCall,
    form: Form,
    *,
    kind: QuestionKind,
    timeout: float,
    server: str,
    tool: str,
    server_sha: str = "",
) -> Draft:
    """Return the question a form asks; one without fields is its own review."""
    state, prompt = moves.start(form)
    return Draft(
        kind=kind,
        call=call,
        actions=_FORM_ACTIONS,
        body=form.message,
        args_sha=form_sha(form),
        prompt=prompt,
        timeout=timeout,
        server=server,
        server_sha=server_sha,
        tool=tool,
        form=form,
        field=state.field if form.fields else None,
    )


def link_draft(call: ToolCall, request: FormRequest, *, timeout: float) -> Draft:
    """Return the question whether to open a server's link; its address and host are what is shown."""
    shown = canonical({"host": urlsplit(request.url).netloc, "url": request.url})
    form = replace(request.form, message=f"{WANTS_LINK}\n{request.form.message}".strip())
    return Draft(
        kind=QuestionKind.URL,
        call=call,
        actions=_FORM_ACTIONS,
        body=form.message,
        args_sha=sha256_of(shown),
        prompt=steps.as_link(moves.start(form)[1]),
        timeout=timeout,
        server=request.server,
        server_sha=request.server_sha,
        tool=request.tool,
        arguments=shown,
        form=form,
    )


def choice_draft(
    call: ToolCall, message: str, options: Sequence[Option], *, timeout: float
) -> Draft:
    """Return the question that lets somebody pick one option; a press settles it."""
    picked = FormField(name=PICKED, kind=FieldKind.CHOICE, label="Choice", options=tuple(options))
    form = Form(message=message, fields=(picked,))
    state = moves.start(form)[0]
    return Draft(
        kind=QuestionKind.CHOICE,
        call=call,
        actions=(Action.SUBMIT, Action.CANCEL),
        body=form.message,
        args_sha=form_sha(form),
        prompt=steps.pick_prompt(form, state),
        timeout=timeout,
        form=form,
        field=state.field,
    )


def form_sha(form: Form) -> str:
    """Return the digest that binds a decision to the form that was shown."""
    fields = [
        {
            "name": item.name,
            "kind": item.kind.value,
            "label": item.label,
            "help": item.help,
            "required": item.required,
            "default": None if isinstance(item.default, Unset) else [item.default],
            "options": [[option.value, option.label] for option in item.options],
            "bounds": [item.minimum, item.maximum, item.pattern],
            "schema": None if item.schema is None else dict(item.schema),
        }
        for item in form.fields
    ]
    return sha256_of(canonical({"message": form.message, "fields": fields, "root": form.root}))
