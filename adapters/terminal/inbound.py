"""One typed line becomes one event: an answer to the open card, a command, or a message. Pure."""

from dataclasses import dataclass
from datetime import datetime

from adapters.terminal.buttons import NotUnderstood, OpenCard, Press, Typed, answer_of
from adapters.terminal.ids import PERSON, PLACE
from gateway.domain.ids import Actor, Place
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was typed; `native_id` is unique over all runs of this home.

    `toolsets`: the only ones its turn may use, none named is all.
    """

    text: str
    native_id: str
    at: datetime
    place: Place = PLACE
    sender: Actor = PERSON
    toolsets: tuple[str, ...] = ()

    @property
    def dedupe(self) -> str:
        return f"{self.place.platform}:{self.place.account}:{self.native_id}"


def event_of(line: Line, card: OpenCard | None) -> InboundEvent | NotUnderstood | None:
    """Return the event of a line, what to say when it answers nothing, None for a blank line.

    Commands win over the open card, so `/stop` works while a question waits. A blank line is never
    an answer: the Return after a digit that was taken at once comes as one.
    """
    text = line.text.strip()
    if not text:
        return None
    if text.startswith("/") and len(text) > 1:
        return command(line)
    if card is not None:
        return _answer(line, card)
    return InboundMessage(
        place=line.place,
        native_id=line.native_id,
        dedupe=line.dedupe,
        sender=line.sender,
        sent_at=line.at,
        text=line.text,
        mentions_us=True,
        toolsets=line.toolsets,
    )


def command(line: Line) -> CommandGiven:
    """Return the slash command that a line holds."""
    name, _, argument = line.text.strip()[1:].partition(" ")
    return CommandGiven(
        place=line.place,
        native_id=line.native_id,
        dedupe=line.dedupe,
        sender=line.sender,
        sent_at=line.at,
        name=name.lower().replace("_", "-"),
        argument=argument.strip(),
        toolsets=line.toolsets,
    )


def _answer(line: Line, card: OpenCard) -> InboundEvent | NotUnderstood:
    answer = answer_of(line.text, card)
    match answer:
        case Press():
            return ButtonPressed(
                place=line.place,
                native_id=line.native_id,
                dedupe=line.dedupe,
                sender=line.sender,
                sent_at=line.at,
                token=answer.token,
            )
        case Typed():
            return FormSubmitted(
                place=line.place,
                native_id=line.native_id,
                dedupe=line.dedupe,
                sender=line.sender,
                sent_at=line.at,
                token=answer.token,
                values={answer.field: answer.values},
            )
        case NotUnderstood():
            return answer
