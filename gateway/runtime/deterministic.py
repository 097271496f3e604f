"""A model that is no model: what it answers follows from the request alone."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.errors import ModelError
from gateway.domain.model import Finish, ModelReply, ModelRequest, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Deterministic:
    """Implements `ModelProvider` with a function of the request."""

    name: str
    reply: Callable[[ModelRequest], ModelReply]
    context_window: int | None = None
    asks_person: bool = True

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return what the function makes of the request."""
        return self.reply(request)


def saying(text: str) -> Deterministic:
    """Return what says one fixed sentence."""
    return Deterministic(name="gateway", reply=lambda _: said(text))


def refusing(error: ModelError) -> Deterministic:
    """Return what stands for a model that cannot be used: whoever asks it is told why."""

    def refuse(request: ModelRequest) -> ModelReply:
        raise error

    return Deterministic(name=error.model, reply=refuse, asks_person=False)


def said(text: str) -> ModelReply:
    """Return a final reply."""
    return ModelReply(text=text, calls=(), usage=Usage(), finish=Finish.STOP)
