"""The `mcp_serve` section of config.yaml."""

import fnmatch
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.conversation import Channel

Targets = Literal["known"] | tuple[Annotated[str, Field(min_length=1)], ...]


class BridgeConfig(BaseModel):
    """What other agents may do; a list of `targets` narrows where they may send to."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    allow_approvals: Annotated[bool, Field(description="Whether they may decide.")] = True
    targets: Annotated[
        Targets, Field(description="`known`, or patterns like telegram:-100* or telegram:#ops.")
    ] = "known"
    folders: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...] | None,
        Field(description="Where files may be sent from; by default the working directory."),
    ] = None

    def allows(self, channel: Channel) -> bool:
        """Say whether a channel may be sent to: by its target, or as `platform:#name`."""
        if self.targets == "known":
            return True
        name = channel.name.lstrip("#@")
        names = [channel.target, *(f"{channel.platform}:{mark}{name}" for mark in ("", "#", "@"))]
        return any(
            fnmatch.fnmatchcase(known.casefold(), pattern.casefold())
            for known in names
            for pattern in self.targets
        )
