"""Which model answers in a place: the one chosen for the session, the channel's, or the configured one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.domain.errors import ModelError
from gateway.domain.ids import Place
from gateway.ports import ModelProvider
from gateway.runtime.deterministic import refusing
from gateway.runtime.overrides import Overrides

FindModel: TypeAlias = Callable[[str], ModelProvider]
"""Returns a model by its name; raises `ModelError` with why it cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """`find` None: there is no other model than the configured ones."""

    default: ModelProvider
    find: FindModel | None = None
    overrides: Overrides = field(default_factory=Overrides)

    def model(self, place: Place, *, chosen: str) -> ModelProvider:
        """Return who answers in a place; `chosen` is the session's own choice, "" for none.

        A chosen one that cannot be used any more says so when it is asked: no other takes its place.
        """
        if not chosen or self.find is None:
            return self.overrides.of(place).provider or self.default
        try:
            return self.find(chosen)
        except ModelError as error:
            return refusing(error)

    def prompt(self, place: Place, *, configured: str) -> str:
        """Return the system prompt of a place."""
        own = self.overrides.of(place).system_prompt
        return configured if own is None else own
