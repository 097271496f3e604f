"""What a claimed turn has to do: which messages it answers, by which model, and what it takes back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.ids import Actor, MessageId
from gateway.domain.message import CommandGiven, InboundMessage
from gateway.domain.operations.inbound import Lane, StoredInbound
from gateway.domain.operations.turns import Claim, Exchange
from gateway.ports import Clock, Inbox, ModelProvider
from gateway.runtime.access import Access
from gateway.runtime.cards import one_line
from gateway.runtime.commands import QUEUE, RETRY, UNDO, find_command
from gateway.runtime.deterministic import saying
from gateway.runtime.direct_call import direct_call
from gateway.runtime.model_choice import ModelChoice
from gateway.runtime.persist import persist

QUEUE_USAGE: Final = "Usage: `/queue TEXT` answers TEXT in a turn of its own."
NOTHING_LEFT: Final = (
    "There is no earlier message in this session that I still remember word for word."
)
MAX_SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """`claim` holds the messages to answer, which may be those of an earlier turn.

    `hides` are messages that the model is told no more once the turn has done it, and in it.
    `aside`: the reply is for people alone and no part of what is told to the model later.
    """

    claim: Claim
    provider: ModelProvider
    hides: tuple[MessageId, ...] = ()
    aside: bool = False

    @property
    def people(self) -> tuple[Actor, ...]:
        """Whose words it answers: it may do what all of them may."""
        return (self.claim.requester, *(item.event.sender for item in self.claim.inputs))

    @property
    def toolsets(self) -> Sequence[str]:
        """What its newest input may use."""
        return toolsets_of(self.claim)


def toolsets_of(claim: Claim) -> Sequence[str]:
    """Return what the newest input may use: the chat it came from may have been narrowed."""
    event = claim.inputs[-1].event if claim.inputs else None
    return event.toolsets if isinstance(event, InboundMessage | CommandGiven) else ()


class Assignments:
    """Reads a claim; commands of the turn lane are known here."""

    def __init__(self, *, inbox: Inbox, access: Access, choice: ModelChoice, clock: Clock) -> None:
        self._inbox = inbox
        self._access = access
        self._choice = choice
        self._clock = clock

    async def of(self, claim: Claim) -> Assignment:
        """Return what a claim is about; the same again for a turn that is taken up again."""
        event = claim.inputs[0].event if claim.inputs else None
        if not isinstance(event, CommandGiven):
            return Assignment(claim=claim, provider=self._model(claim))
        command = find_command(event.name)
        if command is None or command.lane is not Lane.TURN:
            return _told(claim, f"/{event.name} is not known here. /help lists the commands.")
        if not self._access.may_command(event.sender, command.name, place=event.place):
            return _told(claim, f"You may not use /{event.name} here.")
        match command.name:
            case name if name in {RETRY, UNDO}:
                found = await persist(
                    lambda: self._inbox.exchange_before(claim.turn), clock=self._clock
                )
                if found is None:
                    return _told(claim, NOTHING_LEFT)
                return _undone(claim, found) if name == UNDO else self._again(claim, event, found)
            case name if name == QUEUE:
                # With a text it would have come as that message.
                return _told(claim, QUEUE_USAGE)
            case _:
                return Assignment(claim=claim, provider=direct_call(event.argument))

    def _again(self, claim: Claim, command: CommandGiven, found: Exchange) -> Assignment:
        """Answer an exchange's messages once more; nothing of the earlier answer is used."""
        inputs = tuple(_given_here(item, command) for item in found.inputs)
        return Assignment(
            claim=replace(claim, inputs=inputs), provider=self._model(claim), hides=found.replies
        )

    def _model(self, claim: Claim) -> ModelProvider:
        return self._choice.model(claim.place, chosen=claim.model)


def _told(claim: Claim, sentence: str) -> Assignment:
    return Assignment(claim=claim, provider=saying(sentence), aside=True)


def _undone(claim: Claim, found: Exchange) -> Assignment:
    own = tuple(item.message for item in found.inputs if item.message is not None)
    text = next((x.event.text for x in found.inputs if isinstance(x.event, InboundMessage)), "")
    more = len(found.inputs) - 1
    said = saying(
        f"Taken out of what I remember: “{one_line(text, MAX_SHOWN)}”"
        f"{f' and {more} more' if more else ''}, with the answer. What was done stays done."
    )
    return Assignment(claim=claim, provider=said, hides=(*own, *found.replies), aside=True)


def _given_here(item: StoredInbound, command: CommandGiven) -> StoredInbound:
    """Return a message as if the chat of the command had sent it: it may have been narrowed since."""
    if not isinstance(item.event, InboundMessage):
        return item
    return replace(item, event=replace(item.event, toolsets=command.toolsets))
