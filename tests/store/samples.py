"""Domain values that tests of the store need and do not care about."""

from gateway.domain.ids import Actor, Place
from gateway.domain.message import CommandGiven, InboundMessage
from gateway.domain.operations.inbound import Accept, Lane
from store.codec import from_ms
from tests.store.rows import DM

ADA = Actor(platform="telegram", id="7", name="Ada")


def command(name: str) -> CommandGiven:
    """A slash command in a direct chat."""
    return CommandGiven(
        place=DM,
        native_id="n",
        dedupe=f"telegram::{name}",
        sender=ADA,
        sent_at=from_ms(0),
        name=name,
    )


def accept_text(text: str, *, dedupe: str, place: Place = DM) -> Accept:
    """A message for the agent."""
    event = InboundMessage(
        place=place,
        native_id=dedupe,
        dedupe=f"{place.platform}:{place.account}:{dedupe}",
        sender=ADA,
        sent_at=from_ms(0),
        text=text,
    )
    return Accept(event=event, lane=Lane.TURN)
