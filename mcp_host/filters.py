"""Which of a server's tools are registered. The one matcher for every place that asks."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mcp_host.server_config import ToolsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFilter:
    """`include` and `exclude` on original names: exact, or case-sensitive globs; include wins.

    `include` None admits all that are not excluded; an empty one admits none.
    """

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, tools: ToolsConfig) -> "ToolFilter":
        """Return the filter a server entry describes."""
        return cls(include=tools.include, exclude=tools.exclude)

    def admits(self, name: str) -> bool:
        """Tell whether a tool of that original name is registered."""
        return self.rejection(name) is None

    def rejection(self, name: str) -> str | None:
        """Return what keeps the tool out, in words; None when it is admitted."""
        if self.include is not None:
            return None if first_match(self.include, name) is not None else "not in include"
        pattern = first_match(self.exclude, name)
        return None if pattern is None else f"exclude {pattern}"


def first_match(patterns: Iterable[str], name: str) -> str | None:
    """Return the first pattern that is the name itself or a glob for it."""
    return next((item for item in patterns if item == name or fnmatchcase(name, item)), None)
