"""What a delivery looks like when it is shown. Pure."""

from typing import Final

from gateway.domain.delivery import Delivery, Mark

REPEAT_NOTE: Final = "(shown again: the last run ended while this was being shown)"


def shown_text(delivery: Delivery) -> str:
    """Return the text to print; what may be a repeat says so (SPEC §3, delivery)."""
    if Mark.REPEAT in delivery.marks:
        return f"{REPEAT_NOTE}\n{delivery.body}"
    return delivery.body
