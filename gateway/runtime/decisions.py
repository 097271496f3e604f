"""Settles questions: judges who may, writes the decision with the closing edit of its card, rings.

Every way to decide (button, command, shell, bridge, expiry, /stop) comes through here.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gateway.domain.delivery import Part
from gateway.domain.ids import Actor, InboundId, QuestionId
from gateway.domain.operations.questions import (
    Counted,
    Decide,
    ExpireDue,
    RefuseAttempt,
    Refused,
    Ruling,
    Settled,
    Why,
    Withdraw,
)
from gateway.domain.question import Action, Question, QuestionKind, QuestionState, Surface
from gateway.ports import Clock, Questions, QuestionStore, Renderer
from gateway.runtime.access import Access
from gateway.runtime.cards import (
    MAX_REASON,
    STATE_OF,
    closed_line,
    closed_view,
    decided,
    deciders,
    name_of,
    no_answer,
    one_line,
)
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.forms.steps import review_text, state_of
from gateway.runtime.wakeups import Wakeups

SAID: Final = {
    Action.ALLOW_ONCE: "Allowed once.",
    Action.ALLOW_SESSION: "Allowed for this session.",
    Action.ALLOW_ALWAYS: "Always allowed.",
    Action.DENY: "Denied.",
    Action.SUBMIT: "Submitted.",
    Action.DECLINE: "Declined.",
    Action.CANCEL: "Cancelled.",
}

MAX_NAMES: Final = 1_000


class Decisions:
    """The one door through which a pending question ends."""

    def __init__(
        self,
        store: QuestionStore,
        questions: Questions,
        renderers: Mapping[str, Renderer],
        access: Access,
        wakeups: Wakeups,
        clock: Clock,
        config: ApprovalsConfig,
    ) -> None:
        self._store = store
        self._questions = questions
        self._renderers = renderers
        self._access = access
        self._wakeups = wakeups
        self._clock = clock
        self._config = config
        self._names: OrderedDict[str, str] = OrderedDict()

    def remember(self, actor: Actor) -> None:
        """Learn what somebody is called; rows keep only ids."""
        if not actor.name:
            return
        self._names[str(actor)] = actor.name
        self._names.move_to_end(str(actor))
        while len(self._names) > MAX_NAMES:
            self._names.popitem(last=False)

    def named(self, question: Question) -> Question:
        """Return a question as it was read, its people called by name where we know one."""
        decision = question.decision
        if decision is not None and decision.by is not None:
            decision = replace(decision, by=self._called(decision.by))
        return replace(question, requester=self._called(question.requester), decision=decision)

    def _called(self, actor: Actor) -> Actor:
        return actor if actor.name else replace(actor, name=self._names.get(str(actor), ""))

    async def decide(
        self,
        question: Question,
        *,
        actor: Actor,
        surface: Surface,
        action: Action,
        content: Mapping[str, object] | None = None,
        reason: str = "",
        token: str | None = None,
        inbound: InboundId | None = None,
    ) -> Ruling:
        """Settle a question for somebody, if they may and it is still open.

        A refusal is a result too, and every attempt is in the books.
        """
        self.remember(actor)
        if not self.may(question, actor=actor, action=action):
            return await self.refuse(
                question, actor=actor, surface=surface, action=action, inbound=inbound
            )
        edit = await self._closing(
            question, action=action, by=actor, via=surface, reason=reason, content=content
        )
        ruling = await self._store.decide(
            Decide(
                question=question.id,
                actor=actor,
                surface=surface,
                action=action,
                to=STATE_OF[action],
                args_sha=question.args_sha,
                content=content,
                reason=one_line(reason, MAX_REASON),
                token=token,
                edit=edit,
                inbound=inbound,
            )
        )
        if isinstance(ruling, Settled):
            self._ring([question.id])
        return ruling

    def may(self, question: Question, *, actor: Actor, action: Action) -> bool:
        """Say whether `actor` may take `action` on the question."""
        if not self._access.may_decide(question, actor):
            return False
        return action is not Action.ALLOW_ALWAYS or self._access.may_grant_always(actor)

    async def refuse(
        self,
        question: Question,
        *,
        actor: Actor,
        surface: Surface,
        action: Action,
        why: Why = Why.NOT_ALLOWED,
        inbound: InboundId | None = None,
    ) -> Refused:
        """Note an attempt that changes nothing; the question stays as it is."""
        await self._store.refuse(
            RefuseAttempt(
                question=question.id,
                actor=actor,
                surface=surface,
                action=action,
                why=why,
                inbound=inbound,
            )
        )
        return Refused(why=why, question=question)

    async def withdraw(self, questions: Sequence[Question], *, reason: str) -> None:
        """Cancel what is still pending among `questions`, each card saying why."""
        if not questions:
            return
        edits = {
            item.id: await self._closing(
                item, action=Action.WITHDRAW, by=None, via=Surface.SYSTEM, reason=reason
            )
            for item in questions
        }
        await self._store.withdraw(Withdraw(questions=edits, reason=reason))
        self._ring(edits)

    async def expire(self, questions: Sequence[Question]) -> None:
        """End what is due among `questions`, each card saying that nobody answered."""
        if not questions:
            return
        edits = {
            item.id: await self._closing(
                item, action=Action.TIMEOUT, by=None, via=Surface.TIMEOUT, reason=""
            )
            for item in questions
        }
        await self._store.expire_due(ExpireDue(questions=edits))
        self._ring(edits)

    def sentence(self, ruling: Ruling, question: Question, *, actor: Actor, action: Action) -> str:
        """Return what the person who tried is told, as one clear sentence."""
        if isinstance(ruling, Settled):
            return SAID[action]
        if isinstance(ruling, Counted):
            more = "one more" if ruling.votes_needed == 1 else f"{ruling.votes_needed} more"
            return f"Your vote counts; {more} allowed person must agree."
        current = self.named(ruling.question or question)
        return refusal(ruling.why, current, actor=actor, action=action)

    def _ring(self, questions: Mapping[QuestionId, object] | Sequence[QuestionId]) -> None:
        for question in questions:
            self._wakeups.settled(question)
        self._wakeups.deliveries()

    async def _closing(
        self,
        question: Question,
        *,
        action: Action,
        by: Actor | None,
        via: Surface,
        reason: str,
        content: Mapping[str, object] | None = None,
    ) -> Part | None:
        renderer = self._renderers.get(question.shown_in.platform)
        if renderer is None:
            return None
        now = self._clock.now()
        said = closed_line(
            question,
            action=action,
            by=by,
            via=via,
            at=now,
            reason=_picked(question, content) or reason,
        )
        text = _words(question, action, content)
        return renderer.closed_card(
            closed_view(self.named(question), text=text, closed=said, now=now, config=self._config)
        )


def refusal(why: Why, question: Question, *, actor: Actor, action: Action) -> str:
    """Return why an attempt changed nothing."""
    match why:
        case Why.UNKNOWN:
            return "That question is not known any more."
        case Why.NOT_ALLOWED if action is Action.ALLOW_ALWAYS:
            return "Only an admin can always allow a tool; allowing once may still be possible."
        case Why.NOT_ALLOWED:
            return f"Only {deciders(question.approvers, question.requester)} can decide this."
        case Why.EXPIRED:
            return f"Too late: it was {no_answer(question)}."
        case Why.CHANGED:
            return "What the card showed has changed; nothing was done."
        case Why.NOT_SHOWN:
            return "Its arguments are still being sent to the chat; please try again in a moment."
        case Why.NOT_OFFERED:
            return "This card does not offer that."
        case Why.REPEATED:
            return f"{name_of(actor)} has decided this already; another person must."
        case Why.LATE:
            return late(question, actor=actor, action=action)


def late(question: Question, *, actor: Actor, action: Action) -> str:
    """Return who was first; repeating one's own decision is told like the first time."""
    decision = question.decision
    if decision is None:
        return "That question is not open any more."
    if decision.action is action and decision.by is not None and str(decision.by) == str(actor):
        return SAID[action]
    if question.state is QuestionState.EXPIRED:
        return f"Too late: it was {no_answer(question)}."
    return decided(question)


def _words(question: Question, action: Action, content: Mapping[str, object] | None) -> str:
    form = question.form
    if form is None or action is not Action.SUBMIT or question.kind is QuestionKind.CHOICE:
        return question.body
    return review_text(form, state_of(form, content or {}))


def _picked(question: Question, content: Mapping[str, object] | None) -> str:
    if question.kind is not QuestionKind.CHOICE or question.form is None or content is None:
        return ""
    field = question.form.fields[0]
    value = content.get(field.name)
    return next((option.label for option in field.options if option.value == value), "")
