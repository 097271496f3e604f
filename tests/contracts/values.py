"""Domain values for tests of a store; what a test does not name does not matter to it."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from gateway.domain.canonical import CanonicalJson, canonical, sha256_of
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.form import Form
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.message import (
    Attachment,
    ButtonPressed,
    CommandGiven,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from gateway.domain.operations.deliveries import ClaimDelivery
from gateway.domain.operations.inbound import Accept, Lane
from gateway.domain.operations.questions import Ask, Decide
from gateway.domain.operations.turns import Claim, CommitTurn, PlannedStep, RecordSteps, TurnEnd
from gateway.domain.question import (
    Action,
    Button,
    Question,
    QuestionKind,
    QuestionState,
    Surface,
)
from tests.support.clock import NOON

ANNA = Actor(platform="telegram", id="1", name="Anna")
BEN = Actor(platform="telegram", id="2", name="Ben")
CARA = Actor(platform="telegram", id="3", name="Cara")
HOME = Place(platform="telegram", chat="1", chat_type=ChatType.DM)
GROUP = Place(platform="telegram", chat="-5", chat_type=ChatType.TOPIC, thread="7")
_NUMBERS = itertools.count(1)

ALLOWING = (Action.ALLOW_ONCE, Action.ALLOW_SESSION, Action.ALLOW_ALWAYS, Action.DENY)
ARGUMENTS = canonical({"text": "milk"})


def message(
    text: str,
    *,
    place: Place = HOME,
    sender: Actor = ANNA,
    native_id: str = "",
    dedupe: str = "",
    attachments: tuple[Attachment, ...] = (),
    lane: Lane = Lane.TURN,
    position: tuple[str, str] | None = None,
) -> Accept:
    """A message for the agent."""
    native = native_id or f"n{next(_NUMBERS)}"
    event = InboundMessage(
        place=place,
        native_id=native,
        dedupe=dedupe or f"telegram::{native}",
        sender=sender,
        sent_at=NOON,
        text=text,
        attachments=attachments,
    )
    return Accept(event=event, lane=lane, position=position)


def edited(native_id: str, text: str, *, place: Place = HOME) -> Accept:
    """The sender changed a message."""
    number = next(_NUMBERS)
    event = MessageEdited(
        place=place,
        native_id=f"e{number}",
        dedupe=f"telegram::e{number}",
        sender=ANNA,
        sent_at=NOON,
        edited=native_id,
        text=text,
    )
    return Accept(event=event, lane=Lane.CONTROL)


def deleted(native_id: str, *, place: Place = HOME) -> Accept:
    """The sender took a message back."""
    number = next(_NUMBERS)
    event = MessageDeleted(
        place=place,
        native_id=f"d{number}",
        dedupe=f"telegram::d{number}",
        sender=ANNA,
        sent_at=NOON,
        deleted=native_id,
    )
    return Accept(event=event, lane=Lane.CONTROL)


def command(
    name: str,
    argument: str = "",
    *,
    place: Place = HOME,
    lane: Lane = Lane.CONTROL,
    new_session: bool = False,
    resume: int | None = None,
) -> Accept:
    """A slash command."""
    number = next(_NUMBERS)
    event = CommandGiven(
        place=place,
        native_id=f"c{number}",
        dedupe=f"telegram::c{number}",
        sender=ANNA,
        sent_at=NOON,
        name=name,
        argument=argument,
    )
    return Accept(event=event, lane=lane, new_session=new_session, resume=resume)


def press(token: str, *, place: Place = HOME) -> Accept:
    """A press of one of our buttons."""
    number = next(_NUMBERS)
    event = ButtonPressed(
        place=place,
        native_id=f"p{number}",
        dedupe=f"telegram::p{number}",
        sender=ANNA,
        sent_at=NOON,
        token=token,
    )
    return Accept(event=event, lane=Lane.CONTROL)


def text(body: str) -> Part:
    return Part(kind=DeliveryKind.TEXT, body=body)


def card(body: str = "card") -> Part:
    return Part(kind=DeliveryKind.CARD, body=body)


def edit(body: str = "closed") -> Part:
    return Part(kind=DeliveryKind.EDIT, body=body)


def commit(claim: Claim, reply: str = "done", *, end: TurnEnd = TurnEnd.DONE) -> CommitTurn:
    """The end of a claimed turn with one message."""
    return CommitTurn(
        conversation=claim.conversation,
        turn=claim.turn,
        fence=claim.fence,
        end=end,
        reply=reply,
        parts=(text(reply),) if reply else (),
    )


def planned(
    n: int, *, repeatable: bool = False, arguments: CanonicalJson = ARGUMENTS
) -> PlannedStep:
    """A call of the tool `add_note`."""
    return PlannedStep(
        n=n,
        call_id=f"call-{n}",
        server="notes",
        tool="add_note",
        tool_def_sha="definition",
        arguments=arguments,
        args_sha=sha256_of(arguments),
        repeatable=repeatable,
    )


def record(claim: Claim, **steps: object) -> RecordSteps:
    """Steps of a claimed turn."""
    values: dict[str, object] = {"turn": claim.turn, "fence": claim.fence, "rounds": 1, **steps}
    return RecordSteps(**values)  # pyright: ignore[reportArgumentType] - the caller names fields


def question(
    number: int = 1,
    *,
    claim: Claim | None = None,
    step: int | None = None,
    kind: QuestionKind = QuestionKind.TOOL_CALL,
    actions: tuple[Action, ...] = ALLOWING,
    place: Place = HOME,
    shown_in: Place | None = None,
    quorum: int = 1,
    expires_at: datetime = NOON + timedelta(seconds=300),
    form: Form | None = None,
) -> Question:
    """May this call run?"""
    identifier = f"{number:04d}" + "a" * 22
    return Question(
        id=QuestionId(identifier),
        short=identifier[:4],
        kind=kind,
        place=place,
        shown_in=shown_in or place,
        requester=ANNA,
        actions=actions,
        body="May add_note run?",
        args_sha=sha256_of(ARGUMENTS),
        created_at=NOON,
        expires_at=expires_at,
        quorum=quorum,
        turn=None if claim is None else claim.turn,
        step=step,
        server="notes",
        server_sha="server",
        tool="add_note",
        tool_def_sha="definition",
        arguments=ARGUMENTS,
        form=form,
    )


def ask(
    asked: Question,
    *,
    file: Part | None = None,
    field: str | None = None,
    buttons: tuple[Button, ...] = (),
) -> Ask:
    """The question with its card."""
    return Ask(question=asked, buttons=buttons, card=card(), file=file, field=field)


def button(token: str, action: Action = Action.ALLOW_ONCE, argument: str = "") -> Button:
    return Button(token=token, action=action, label="", argument=argument)


def decide(
    asked: Question,
    action: Action = Action.ALLOW_ONCE,
    *,
    by: Actor = ANNA,
    closing: Part | None = None,
    token: str | None = None,
    args_sha: str = "",
    content: Mapping[str, object] | None = None,
) -> Decide:
    """Somebody who may decide does."""
    to = {
        Action.DENY: QuestionState.DENIED,
        Action.SUBMIT: QuestionState.ACCEPTED,
        Action.DECLINE: QuestionState.DECLINED,
        Action.CANCEL: QuestionState.CANCELLED,
    }.get(action, QuestionState.ALLOWED)
    return Decide(
        question=asked.id,
        actor=by,
        surface=Surface.BUTTON,
        action=action,
        to=to,
        args_sha=args_sha or asked.args_sha,
        content=content,
        token=token,
        edit=closing,
    )


def sending(
    *, platform: str = "telegram", cost: Mapping[DeliveryKind, int] | None = None, burst: int = 0
) -> ClaimDelivery:
    """A delivery loop asks for work."""
    return ClaimDelivery(
        platform=platform,
        account="",
        worker="w",
        lease_until=NOON + timedelta(seconds=60),
        cost_ms=cost or {},
        burst_ms=burst,
    )


def with_arguments(asked: Question, arguments: CanonicalJson) -> Question:
    """The question about other arguments."""
    return replace(asked, arguments=arguments, args_sha=sha256_of(arguments))
