"""Domain values that tests of the store need and do not care about."""

from gateway.domain.ids import Actor
from gateway.domain.message import CommandGiven
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
