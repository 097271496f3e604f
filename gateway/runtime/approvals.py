"""Asks people on behalf of a call: may it run, a server's form, guided mode's choices and arguments.

A question of a step that was asked before a restart is continued, never asked twice. Who was
first, and whether a question is still open, is settled by its row.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from gateway.domain.canonical import sha256_of
from gateway.domain.deadline import Deadline
from gateway.domain.form import Form, FormAction, FormAnswer, Option
from gateway.domain.ids import QuestionId, RuleId, TurnId
from gateway.domain.operations.upkeep import PinTool
from gateway.domain.question import Action, Question, QuestionKind, QuestionState
from gateway.domain.tools import ToolCall, ToolSpec
from gateway.ports import (
    Approval,
    Clock,
    DeliveryStore,
    FormRequest,
    Questions,
    QuestionStore,
    Renderer,
    Rules,
    SamplingRequest,
)
from gateway.runtime.access import Access
from gateway.runtime.asking import Asking
from gateway.runtime.cards import outcome_sentence
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.decisions import Decisions
from gateway.runtime.definitions import change_of, definition_of
from gateway.runtime.drafts import (
    PICKED,
    Draft,
    approval_draft,
    choice_draft,
    form_draft,
    link_draft,
    sampling_draft,
)
from gateway.runtime.notices import Notices
from gateway.runtime.routing import Routed, Routing
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

MAX_LISTED: Final = 1_000


_DraftOf: TypeAlias = Callable[[tuple[Action, ...], ApprovalsConfig], Draft]
"""Makes the question once it is known what its card may offer, and by which rules."""


class BrokerStore(QuestionStore, DeliveryStore, Protocol):
    """What the broker writes."""

    async def pin_tool(self, pin: PinTool) -> None:
        """Keep a tool as it was allowed."""
        ...

    async def use_rule(self, rule: RuleId) -> bool:
        """Count a use of a standing rule; False when it is not in force any more."""
        ...


class ApprovalBroker:
    """One for the process; every wait holds the caller's time limit still."""

    def __init__(
        self,
        store: BrokerStore,
        questions: Questions,
        rules: Rules,
        renderers: Mapping[str, Renderer],
        access: Access,
        wakeups: Wakeups,
        clock: Clock,
        config: ApprovalsConfig,
        routing: Routing,
    ) -> None:
        self._store = store
        self._questions = questions
        self._rules = rules
        self._access = access
        self._config = config
        self._routing = routing
        self._notices = Notices(store, renderers, wakeups)
        self._decisions = Decisions(store, questions, renderers, access, wakeups, clock, config)
        self._asking = Asking(store, questions, renderers, self._decisions, wakeups, clock, config)
        self._stopping = False
        self._abandoned: set[TurnId] = set()

    @property
    def decisions(self) -> Decisions:
        """The one door through which questions end; every other way to decide uses it too."""
        return self._decisions

    def stop(self) -> None:
        """Say that the process ends: whoever is cancelled from now on leaves its question open."""
        self._stopping = True

    def abandon(self, turn: TurnId) -> None:
        """Say that a person ends the turn: its questions are left to `withdraw_turn`."""
        self._abandoned.add(turn)

    async def approve(self, call: ToolCall, spec: ToolSpec, *, deadline: Deadline) -> Approval:
        """Say whether a call may run, asking its conversation unless a standing rule allows it."""
        self._decisions.remember(call.requester)
        known = await self._of_step(call, QuestionKind.TOOL_CALL)
        rule = await self._rules.match(spec, session=call.session)
        if rule is not None and await self._store.use_rule(rule):
            await self._drop(known, reason="a standing rule allows it")
            return Approval(allowed=True, reason=f"allowed by standing rule {rule}")
        if known is not None and (known.consumed or not _covers(known, call, spec)):
            await self._drop(known, reason="what it covered has changed")
            known = None
        agreed = await self._rules.agreed(spec.server, spec.name)

        def draft(actions: tuple[Action, ...], config: ApprovalsConfig) -> Draft:
            change = change_of(agreed, spec)
            return approval_draft(call, spec, actions=actions, config=config, change=change)

        with deadline.paused():
            asked = known or await self._ask_who_may(call, draft)
            if isinstance(asked, str):
                if self._routing.shows_cards(call.place):
                    await self._notices.not_asked(call, spec, reason=asked)
                return Approval(allowed=False, reason=f"not run: {asked}")
            settled = await self._asking.settled(asked)
        is_new = agreed is None or agreed.definition_sha != spec.definition_sha
        if is_new and settled.state is QuestionState.ALLOWED:
            await self._store.pin_tool(PinTool(tool=spec, definition=definition_of(spec)))
        return _approval(settled)

    async def elicit(
        self, call: ToolCall, request: FormRequest, *, deadline: Deadline
    ) -> FormAnswer:
        """Put a server's form to the conversation of the call that is under way.

        Cancelled by the server, its card is withdrawn; at shutdown it stays as it is, and `/stop`
        closes it with the turn.
        """
        if request.problem:
            await self._notices.declined(call, request)
            return FormAnswer(action=FormAction.DECLINE, reason=request.problem, asked=False)
        seconds = self._config.timeout if request.timeout is None else request.timeout
        if request.url:
            return await self._open_link(call, request, deadline, seconds=seconds)
        draft = form_draft(
            call,
            request.form,
            kind=QuestionKind.ELICITATION,
            timeout=seconds,
            server=request.server,
            server_sha=request.server_sha,
            tool=request.tool,
        )
        return await self._form_answer(draft, deadline)

    async def _open_link(
        self, call: ToolCall, request: FormRequest, deadline: Deadline, *, seconds: float
    ) -> FormAnswer:
        """Ask before the link is given; whoever agrees finds it in the chat."""
        answer = await self._form_answer(link_draft(call, request, timeout=seconds), deadline)
        if answer.action is FormAction.ACCEPT:
            await self._notices.link(call, request)
        return answer

    async def sample(
        self, call: ToolCall, request: SamplingRequest, *, deadline: Deadline
    ) -> Approval:
        """Say whether a server may use our model, asking unless a standing rule allows it.

        Cancelled, its card ends as a form's does.
        """
        self._decisions.remember(call.requester)
        rule = await self._rules.match(_sampling_of(request), session=call.session)
        if rule is not None and await self._store.use_rule(rule):
            return Approval(allowed=True, reason=f"allowed by standing rule {rule}")

        def draft(actions: tuple[Action, ...], config: ApprovalsConfig) -> Draft:
            return sampling_draft(call, request, actions=actions, config=config)

        with deadline.paused():
            asked = await self._ask_who_may(call, draft)
            if isinstance(asked, str):
                return Approval(allowed=False, reason=asked)
            return _approval(await self._settled(asked, call))

    async def fill(
        self, call: ToolCall, form: Form, *, tool: str, server: str, deadline: Deadline
    ) -> FormAnswer:
        """Ask for the arguments of a tool; one without arguments needs no form."""
        if not form.fields:
            return FormAnswer(action=FormAction.ACCEPT, content={})
        draft = form_draft(
            call,
            form,
            kind=QuestionKind.ARGUMENTS,
            timeout=self._config.timeout,
            server=server,
            tool=tool,
        )
        return await self._form_answer(draft, deadline, known=await self._same_form(draft))

    async def choose(
        self, call: ToolCall, *, message: str, options: Sequence[Option], deadline: Deadline
    ) -> str | None:
        """Let somebody pick one option; None when they cancel or nobody answers."""
        if not options:
            return None
        draft = choice_draft(call, message, options, timeout=self._config.timeout)
        answer = await self._form_answer(draft, deadline, known=await self._same_form(draft))
        return None if answer.content is None else str(answer.content[PICKED])

    async def tell(self, call: ToolCall, text: str) -> None:
        """Say something about a call in its conversation; the same text is said of it once."""
        await self._notices.of_call(call, text)

    async def withdraw_turn(self, turn: TurnId, reason: str) -> None:
        """Cancel whatever a turn still asks; its cards say why."""
        self._abandoned.discard(turn)
        pending = await self._questions.pending(turn=turn, limit=MAX_LISTED)
        await self._decisions.withdraw(pending, reason=reason)

    async def withdraw(self, questions: Sequence[QuestionId], *, reason: str) -> None:
        """Cancel questions that nobody waits for any more."""
        found = [await self._questions.find(item) for item in questions]
        await self._decisions.withdraw(
            [item for item in found if isinstance(item, Question)], reason=reason
        )

    # --- asking ---------------------------------------------------------------------

    async def _ask_who_may(self, call: ToolCall, draft_of: _DraftOf) -> Question | str:
        """Ask where the configuration says that approvals are decided."""
        routed = await self._routing.route(call)
        if isinstance(routed, str):
            return routed
        draft = draft_of(self._offered(call, routed), self._routing.rules(call))
        asked = await self._asking.ask(draft, shown_in=routed.shown_in)
        if isinstance(asked, Question):
            await self._notices.asked_elsewhere(asked, draft, routed, config=self._config)
        return asked

    async def _ask_here(self, draft: Draft) -> Question | str:
        """Ask the conversation whose call it is, and no other."""
        routed = self._routing.here(draft.call)
        if isinstance(routed, str):
            return routed
        return await self._asking.ask(draft, shown_in=routed.shown_in)

    async def _form_answer(
        self, draft: Draft, deadline: Deadline, *, known: Question | None = None
    ) -> FormAnswer:
        self._decisions.remember(draft.call.requester)
        with deadline.paused():
            asked = known or await self._ask_here(draft)
            if isinstance(asked, str):
                return FormAnswer(action=FormAction.CANCEL, reason=asked, asked=False)
            settled = await self._settled(asked, draft.call)
        return _form_answer_of(settled)

    async def _settled(self, asked: Question, call: ToolCall) -> Question:
        """Wait for the answer; what a server takes back is withdrawn."""
        try:
            return await self._asking.settled(asked)
        except asyncio.CancelledError:
            if asked.kind in _OF_SERVERS and not self._is_left(call):
                await self._decisions.withdraw([asked], reason="the server took it back")
            raise

    def _is_left(self, call: ToolCall) -> bool:
        return self._stopping or call.turn in self._abandoned

    async def _of_step(self, call: ToolCall, kind: QuestionKind) -> Question | None:
        if call.turn is None or call.step is None:
            return None
        found = await self._questions.of_step(call.turn, call.step)
        return found if found is not None and found.kind is kind else None

    async def _same_form(self, draft: Draft) -> Question | None:
        found = await self._of_step(draft.call, draft.kind)
        return found if found is not None and found.args_sha == draft.args_sha else None

    async def _drop(self, question: Question | None, *, reason: str) -> None:
        if question is not None and question.state is QuestionState.PENDING:
            await self._decisions.withdraw([question], reason=reason)

    def _offered(self, call: ToolCall, routed: Routed) -> tuple[Action, ...]:
        """Return what the card offers; elsewhere than in its own chat, admins read it."""
        session = (Action.ALLOW_SESSION,) if call.session is not None else ()
        may_grant = self._access.may_grant_always(call.requester)
        elsewhere = not routed.shown_in.shows_same_as(call.place)
        always = (Action.ALLOW_ALWAYS,) if may_grant or elsewhere else ()
        return (Action.ALLOW_ONCE, *session, *always, Action.DENY)


_OF_SERVERS: Final = frozenset({QuestionKind.ELICITATION, QuestionKind.URL, QuestionKind.SAMPLING})


def _sampling_of(request: SamplingRequest) -> ToolSpec:
    """Return what a standing rule about sampling covers: the server, no tool of it."""
    return ToolSpec(
        server=request.server,
        server_sha=request.server_sha,
        name="",
        alias="",
        title="",
        description="",
        input_schema={},
        definition_sha="",
    )


def _covers(question: Question, call: ToolCall, spec: ToolSpec) -> bool:
    return (
        question.args_sha == sha256_of(call.arguments)
        and (question.server, question.server_sha) == (spec.server, spec.server_sha)
        and (question.tool, question.tool_def_sha) == (spec.name, spec.definition_sha)
    )


def _approval(question: Question) -> Approval:
    decision = question.decision
    if decision is None:
        return Approval(allowed=False, reason="not run: nobody decided")
    reason = outcome_sentence(question, decision)
    if question.state is QuestionState.ALLOWED:
        return Approval(allowed=True, reason=reason, question=question.id, decision=decision)
    return Approval(allowed=False, reason=reason, decision=decision)


def _form_answer_of(question: Question) -> FormAnswer:
    decision = question.decision
    if decision is None:
        return FormAnswer(action=FormAction.CANCEL, reason="nobody answered")
    match question.state:
        case QuestionState.ACCEPTED:
            return FormAnswer(action=FormAction.ACCEPT, content=decision.content or {})
        case QuestionState.DECLINED | QuestionState.DENIED:
            return FormAnswer(
                action=FormAction.DECLINE, reason=outcome_sentence(question, decision)
            )
        case _:
            return FormAnswer(action=FormAction.CANCEL, reason=outcome_sentence(question, decision))
