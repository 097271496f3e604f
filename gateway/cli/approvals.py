"""`hermes approvals`: what waits for a decision, deciding it, and the standing rules.

Reading needs no gateway. Deciding goes through the running one; without one, the home is held for
that moment.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gateway.cli.errors import CommandFailed, NoSuch
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.output import print_data, print_json, say
from gateway.domain.errors import GatewayNotRunning, GatewayRefused
from gateway.domain.question import Action, QuestionKind

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from gateway.app.offline import Offline
    from gateway.control.client import SocketClient
    from gateway.domain.operations.questions import Ruling
    from gateway.domain.question import Question
    from gateway.ports import Decided, Readers

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List what waits for a decision, decide it, and manage standing rules.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Identifier = Annotated[str, typer.Argument(metavar="ID", help="The id, or its first characters.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="For the card.")]

PAGE: Final = 200
MAX_OPEN: Final = 1_000

_LISTED: Final = frozenset(
    {QuestionKind.TOOL_CALL, QuestionKind.ELICITATION, QuestionKind.URL, QuestionKind.SAMPLING}
)
"""Guided mode's own questions are nobody else's business."""


@app.command("list")
def list_all(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Settled ones too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what waits for a decision; with --all everything ever asked, and every try to decide."""
    found = _run(_questions(ctx, everything=everything))
    if as_json:
        print_json({"approvals": found})
        return
    for item in found:
        print_data(_line(item))
    if not found:
        say("nothing was asked yet" if everything else "nothing waits for a decision")


@app.command()
def show(ctx: typer.Context, identifier: Identifier, *, as_json: AsJson = False) -> None:
    """Show one question with all its arguments."""
    found = _run(_question(ctx, identifier))
    if as_json:
        print_json(found)
        return
    import json

    print_data(_line(found))
    if found["body"]:
        print_data(found["body"])
    if found["arguments"] is not None:
        print_data(json.dumps(found["arguments"], indent=2, ensure_ascii=False))
    for attempt in found["attempts"]:
        why = f": {attempt['reason']}" if attempt["reason"] else ""
        print_data("{by} via {via}: {action}, {outcome}".format(**attempt) + why)
    if found["result"]:
        print_data(f"its call: {found['result']}")


@app.command()
def allow(
    ctx: typer.Context,
    identifier: Identifier,
    *,
    session: Annotated[bool, typer.Option("--session", help="For this session.")] = False,
    always: Annotated[bool, typer.Option("--always", help="From now on.")] = False,
    reason: Reason = "",
) -> None:
    """Allow what a card asks, once unless said otherwise."""
    if session and always:
        raise typer.BadParameter("--session and --always exclude each other")
    action = Action.ALLOW_ONCE
    if session or always:
        action = Action.ALLOW_SESSION if session else Action.ALLOW_ALWAYS
    _decide(ctx, identifier, action, reason)


@app.command()
def deny(ctx: typer.Context, identifier: Identifier, *, reason: Reason = "") -> None:
    """Deny what a card asks; a form is declined."""
    _decide(ctx, identifier, Action.DENY, reason)


@app.command()
def rules(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List the standing rules: what is allowed for a session, or always."""
    found = _run(_rules(ctx))
    if as_json:
        print_json({"rules": found})
        return
    for item in found:
        print_data(f"{item['id']} {item['server']} · {item['tool']} {item['scope']}")
    if not found:
        say("there is no standing rule")


@app.command()
def revoke(
    ctx: typer.Context, rule: Annotated[str, typer.Argument(metavar="RULE", help="Its number.")]
) -> None:
    """End a standing rule: its tool asks again."""
    _run(_revoke(ctx, rule))
    say(f"rule {rule} has ended")


# --- reading ------------------------------------------------------------------------


@asynccontextmanager
async def _reading(ctx: typer.Context) -> "AsyncGenerator[Readers | None]":
    from gateway.app.offline import open_reading

    async with open_reading(home_of(ctx)) as readers:
        yield readers


async def _questions(ctx: typer.Context, *, everything: bool) -> Sequence[Mapping[str, Any]]:
    from gateway.control.shapes import question_json, record_json

    async with _reading(ctx) as readers:
        if readers is None:
            return []
        redact = _redact(ctx)
        if not everything:
            pending = await readers.questions.open(limit=MAX_OPEN)
            return [question_json(item, redact=redact) for item in pending]
        found: list[Mapping[str, Any]] = []
        page = await readers.questions.page(limit=PAGE)
        while page:
            listed = [item for item in page if item.kind in _LISTED]
            records = await readers.questions.records([item.id for item in listed])
            found += [
                {**question_json(item, redact=redact), **record_json(records[item.id])}
                for item in listed
            ]
            page = await readers.questions.page(before=page[-1].id, limit=PAGE)
    return found


async def _question(ctx: typer.Context, identifier: str) -> Mapping[str, Any]:
    from gateway.control.shapes import question_json, record_json

    async with _reading(ctx) as readers:
        if readers is None:
            raise NoSuch("question", identifier)
        question = await _find(readers, identifier)
        records = await readers.questions.records([question.id])
        shown = question_json(question, redact=_redact(ctx))
        return {**shown, **record_json(records[question.id])}


async def _rules(ctx: typer.Context) -> Sequence[Mapping[str, Any]]:
    from gateway.control.shapes import rule_json

    async with _reading(ctx) as readers:
        return [] if readers is None else [rule_json(item) for item in await readers.rules.live()]


async def _find(readers: "Readers", identifier: str) -> "Question":
    from gateway.domain.conversation import Ambiguous

    found = await readers.questions.find(identifier)
    if found is None:
        raise NoSuch("question", identifier)
    if isinstance(found, Ambiguous):
        raise CommandFailed(f"{identifier} names several: {', '.join(found.candidates)}")
    return found


def _redact(ctx: typer.Context) -> Sequence[str]:
    from gateway.config.load import load

    loaded = load(home_of(ctx), environ=invocation_of(ctx).environ)
    return loaded.config.approvals.redact


# --- deciding -----------------------------------------------------------------------


def _decide(ctx: typer.Context, identifier: str, action: Action, reason: str) -> None:
    try:
        decided = _run(_client(ctx).decide(identifier, action=action, reason=reason))
    except GatewayNotRunning:
        decided = _run(_decide_offline(ctx, identifier, action, reason))
    except GatewayRefused as error:
        if error.code == "not_found":
            raise NoSuch("question", identifier) from error
        raise
    more = f"; {decided.votes_needed} more must agree" if decided.votes_needed else ""
    say(f"{decided.question[:8]}: {decided.action.value}{more}")


async def _decide_offline(
    ctx: typer.Context, identifier: str, action: Action, reason: str
) -> "Decided":
    from gateway.control.judging import NEEDS_ANSWERS, judged_action, refused_sentence
    from gateway.control.operators import operator_here
    from gateway.domain.operations.questions import Counted, Settled
    from gateway.domain.question import Surface
    from gateway.ports import Decided

    actor = operator_here()
    _check_store(ctx, "question", identifier)
    async with _deciding(ctx, str(actor)) as offline:
        question = await _find(offline.readers, identifier)
        wanted = judged_action(action, question)
        if wanted is None:
            raise CommandFailed(NEEDS_ANSWERS)
        ruling: Ruling = await offline.decisions.decide(
            question, actor=actor, surface=Surface.CLI, action=wanted, reason=reason
        )
        if isinstance(ruling, Settled):
            return Decided(question=question.id, action=ruling.decision.action)
        if isinstance(ruling, Counted):
            return Decided(question=question.id, action=wanted, votes_needed=ruling.votes_needed)
        current = ruling.question or question
        sentence = refused_sentence(offline.decisions, ruling, current, actor=actor, action=wanted)
    raise CommandFailed(sentence)


async def _revoke(ctx: typer.Context, rule: str) -> None:
    try:
        await _client(ctx).revoke_rule(rule)
    except GatewayRefused as error:
        if error.code == "not_found":
            raise NoSuch("rule", rule) from error
        raise
    except GatewayNotRunning:
        await _revoke_offline(ctx, rule)


async def _revoke_offline(ctx: typer.Context, rule: str) -> None:
    from gateway.control.operators import operator_here
    from gateway.domain.ids import RuleId
    from gateway.domain.operations.upkeep import RevokeRule

    actor = operator_here()
    known = rule.isascii() and rule.isdecimal()
    _check_store(ctx, "rule", rule)
    async with _deciding(ctx, str(actor)) as offline:
        revoke = RevokeRule(rule=RuleId(int(rule) if known else 0), by=actor)
        if await offline.store.revoke_rule(revoke) is None:
            raise NoSuch("rule", rule)


def _check_store(ctx: typer.Context, what: str, name: str) -> None:
    """Refuse what cannot be there, without making a store for it."""
    if not home_of(ctx).state_db.exists():
        raise NoSuch(what, name)


@asynccontextmanager
async def _deciding(ctx: typer.Context, operator: str) -> "AsyncGenerator[Offline]":
    from gateway.app.offline import open_deciding
    from gateway.config.load import load

    invocation, home = invocation_of(ctx), home_of(ctx)
    loaded = load(home, environ=invocation.environ)
    invocation.secrets = loaded.secrets
    opened = open_deciding(home, loaded, environ=invocation.environ, operator=operator)
    async with opened as offline:
        yield offline


def _client(ctx: typer.Context) -> "SocketClient":
    from gateway.control.client import SocketClient

    return SocketClient.of(home_of(ctx).path, environ=invocation_of(ctx).environ)


def _run(work: "Coroutine[Any, Any, Any]") -> Any:
    import asyncio

    return asyncio.run(work)


def _line(item: Mapping[str, Any]) -> str:
    decided = f", {item['decided_by']} via {item['decided_via']}" if item["decided_by"] else ""
    name = " · ".join(part for part in (item["server"], item["tool"]) if part)
    return f"{item['short']} {name} {item['state']}{decided}, asked by {item['requested_by']}"
