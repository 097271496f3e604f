"""How much the bridge says of its own accord."""

from enum import StrEnum


class ChannelMode(StrEnum):
    """Whether messages are pushed to the client; `AUTO`: when it is Claude Code."""

    OFF = "off"
    ON = "on"
    AUTO = "auto"
