"""A server's question: its schema becomes a form, a person's answer becomes what the server gets.

Asks nobody; the runtime does.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from gateway.domain.form import MAX_TEXT, Form, FormAction, FormAnswer, FormField
from gateway.domain.schema_form import Unaskable, form_of
from gateway.ports import FormRequest
from mcp_host.links import link_problem
from mcp_host.sanitize import clean_text

MAX_REASON: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back to the server; `content` only with `ACCEPT`, `reason` is for our log and chat."""

    action: FormAction
    content: Mapping[str, object] | None = None
    reason: str = ""

    def as_result(self) -> dict[str, object]:
        """Return the result object of `elicitation/create`."""
        if self.content is None:
            return {"action": self.action.value}
        return {"action": self.action.value, "content": dict(self.content)}


def form_request(
    *, server: str, server_sha: str, tool: str, params: Mapping[str, object], links: bool = False
) -> FormRequest:
    """Turn the parameters of `elicitation/create` into a form, or into why it cannot be asked.

    With `links` a person may be asked to open one.
    """
    message = params.get("message")
    text = message if isinstance(message, str) else ""
    if links and params.get("mode") == "url":
        return FormRequest(
            server=server,
            server_sha=server_sha,
            tool=tool,
            form=Form(message=clean_text(text, limit=MAX_TEXT)),
            problem=link_problem(params.get("url")),
            url=str(params.get("url") or ""),
        )
    form = _form(params, text)
    problem = ""
    if isinstance(form, Unaskable):
        problem = clean_text(form.reason(), limit=MAX_REASON)
        form = Form(message=clean_text(text, limit=MAX_TEXT))
    return FormRequest(server=server, server_sha=server_sha, tool=tool, form=form, problem=problem)


def reply_to(answer: FormAnswer, params: Mapping[str, object]) -> Reply:
    """Return what the server gets; content its own schema refuses is declined, never sent."""
    if answer.action is not FormAction.ACCEPT or params.get("mode") == "url":
        return Reply(action=answer.action, reason=answer.reason)
    content = answer.content or {}
    problem = content_problem(params.get("requestedSchema", {}), content)
    if problem is not None:
        return Reply(action=FormAction.DECLINE, reason=problem)
    return Reply(action=FormAction.ACCEPT, content=content)


def content_problem(schema: object, content: Mapping[str, object]) -> str | None:
    """Say what a schema has against an answer; None when it is valid. Fetches nothing."""
    if not isinstance(schema, Mapping):
        return "the server sent no schema"
    # Costs a sixth of a second, and few servers ever ask.
    from jsonschema import Draft202012Validator, exceptions, validators
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    document = dict(cast("Mapping[str, object]", schema))
    kind = validators.validator_for(document, Draft202012Validator)
    # An empty registry resolves no reference outside the schema itself.
    nothing: Registry[Any] = Registry()
    answer: Any = dict(content)
    try:
        kind.check_schema(document)
        validator = kind(document, registry=nothing, format_checker=kind.FORMAT_CHECKER)
        errors = cast("Iterable[exceptions.ValidationError]", validator.iter_errors(answer))
        error = max(errors, key=exceptions.relevance, default=None)
    except (exceptions.SchemaError, Unresolvable, RecursionError, re.error):
        return "the server's schema cannot be used"
    if error is None:
        return None
    # The library's own text shows the answer; where it fails is enough.
    path = ".".join(str(part) for part in cast("Iterable[object]", error.absolute_path))
    rule = str(cast("object", error.validator))
    return clean_text(f"{path or 'the answer'} does not satisfy {rule}", limit=MAX_REASON)


def _form(params: Mapping[str, object], message: str) -> Form | Unaskable:
    # A request without a mode is a form.
    if params.get("mode", "form") != "form":
        return Unaskable(property="", problem="wants a link opened, which is declined")
    schema = params.get("requestedSchema", {})
    if not isinstance(schema, Mapping):
        return Unaskable(property="", problem="has no schema")
    form = form_of(
        cast("Mapping[str, object]", schema), message=message, lenient=False, clean=clean_text
    )
    if isinstance(form, Unaskable):
        return form
    hidden = next((field for field in form.fields if not _is_visible(field)), None)
    if hidden is not None:
        return Unaskable(property=hidden.name, problem="has hidden characters in what it sends")
    return form


def _is_visible(field: FormField) -> bool:
    """Names, constants and defaults go back as they are, so none may differ from what is shown."""
    values = [option.value for option in field.options]
    sent = [field.name, field.default, *values]
    return all(clean_text(text) == text for text in sent if isinstance(text, str))
