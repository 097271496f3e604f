"""The commands that decide: /approve, /deny, /approvals. They end the same rows as the buttons."""

from collections.abc import Sequence
from typing import Final

from gateway.domain.conversation import Ambiguous
from gateway.domain.ids import Actor
from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.question import Action, Question, QuestionKind, QuestionState, Surface
from gateway.ports import Clock, Questions
from gateway.runtime.cards import name_of, one_line, title_of
from gateway.runtime.command_replies import Replies
from gateway.runtime.decisions import Decisions

MAX_LISTED: Final = 20
MIN_ID: Final = 4

_SCOPES: Final = {
    "": Action.ALLOW_ONCE,
    "once": Action.ALLOW_ONCE,
    "session": Action.ALLOW_SESSION,
    "always": Action.ALLOW_ALWAYS,
}
_GATED: Final = frozenset({QuestionKind.TOOL_CALL, QuestionKind.SAMPLING})


class ApprovalReplies:
    """Finds the question somebody names and decides it as them."""

    def __init__(self, questions: Questions, decisions: Decisions, clock: Clock) -> None:
        self._questions = questions
        self._decisions = decisions
        self._clock = clock

    @property
    def replies(self) -> Replies:
        """What answers each of its commands."""
        return {"approve": self.approve, "deny": self.deny, "approvals": self.waiting}

    async def approve(self, stored: StoredInbound, event: CommandGiven) -> str:
        """`/approve ID [session|always]`."""
        identifier, _, scope = event.argument.strip().partition(" ")
        action = _SCOPES.get(scope.strip().casefold())
        if not identifier or action is None:
            return "Usage: `/approve ID [session|always]`. /approvals lists what waits."
        found = await self._find(identifier)
        if isinstance(found, str):
            return found
        if found.kind not in _GATED and found.state is QuestionState.PENDING:
            return "That needs answers: use its card, or refuse it with /deny."
        return await self._decide(found, event.sender, action)

    async def deny(self, stored: StoredInbound, event: CommandGiven) -> str:
        """`/deny ID [reason]`; a form is declined, a choice cancelled."""
        identifier, _, reason = event.argument.strip().partition(" ")
        if not identifier:
            return "Usage: `/deny ID [reason]`. /approvals lists what waits."
        found = await self._find(identifier)
        if isinstance(found, str):
            return found
        ways = (Action.DENY, Action.DECLINE, Action.CANCEL)
        action = next((way for way in ways if way in found.actions), Action.DENY)
        return await self._decide(found, event.sender, action, reason=reason.strip())

    async def waiting(self, stored: StoredInbound, event: CommandGiven) -> str:
        """`/approvals`: what waits in this conversation."""
        del stored
        pending = await self._questions.pending(shown_in=event.place)
        now = self._clock.now()
        lines = [
            f"`{item.short}` {title_of(item)}, asked by {name_of(self._decisions.named(item).requester)}, "
            f"{max(0.0, (item.expires_at - now).total_seconds()):.0f} s left"
            for item in pending[:MAX_LISTED]
        ]
        if len(pending) > MAX_LISTED:
            lines.append(f"{len(pending) - MAX_LISTED} more")
        return "\n".join(f"- {line}" for line in lines) or "Nothing waits for a decision here."

    async def _find(self, identifier: str) -> Question | str:
        wanted = identifier.casefold()
        if len(wanted) < MIN_ID:
            return f"An ID has at least {MIN_ID} characters. /approvals lists what waits."
        found = await self._questions.find(wanted)
        if found is None:
            return f"There is no question {one_line(identifier)}. /approvals lists what waits."
        if isinstance(found, Ambiguous):
            return f"{one_line(identifier)} names several: {_listed(found.candidates)}."
        return self._decisions.named(found)

    async def _decide(
        self, question: Question, actor: Actor, action: Action, *, reason: str = ""
    ) -> str:
        ruling = await self._decisions.decide(
            question, actor=actor, surface=Surface.COMMAND, action=action, reason=reason
        )
        said = self._decisions.sentence(ruling, question, actor=actor, action=action)
        return f"`{question.short}` {title_of(question)}: {said}"


def _listed(candidates: Sequence[str]) -> str:
    shown = ", ".join(f"`{item}`" for item in candidates[:MAX_LISTED])
    more = len(candidates) - MAX_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
