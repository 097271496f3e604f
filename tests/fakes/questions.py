"""A question that waits, for tests of who may decide it."""

from datetime import timedelta

from gateway.domain.ids import Actor, Place, QuestionId
from gateway.domain.question import Action, Approvers, Question, QuestionKind
from tests.support.clock import NOON

BY_DEFAULT = Approvers()


def asked_by(requester: Actor, place: Place, approvers: Approvers = BY_DEFAULT) -> Question:
    """Return an approval that somebody's call waits for in a place."""
    return Question(
        id=QuestionId("a" * 26),
        short="aaaa",
        kind=QuestionKind.TOOL_CALL,
        place=place,
        shown_in=place,
        requester=requester,
        actions=(Action.ALLOW_ONCE, Action.DENY),
        body="",
        args_sha="",
        created_at=NOON,
        expires_at=NOON + timedelta(minutes=5),
        approvers=approvers,
    )
