"""The `mcp_serve` section of config.yaml."""

import fnmatch
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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

    def allows(self, names: Sequence[str]) -> bool:
        """Say whether a channel that goes by these names may be sent to."""
        if self.targets == "known":
            return True
        folded = [name.casefold() for name in names]
        return any(
            fnmatch.fnmatchcase(name, pattern.casefold())
            for name in folded
            for pattern in self.targets
        )
