"""Asks one model after another until one answers. Knows no provider."""

import logging
from collections.abc import Callable, Sequence

from gateway.domain.errors import ContextTooLong, ModelError, ModelUnavailable
from gateway.domain.model import ModelReply, ModelRequest
from gateway.ports import ModelProvider

logger = logging.getLogger(__name__)


async def first_answer(
    models: Sequence[ModelProvider],
    request: ModelRequest,
    *,
    on_text: Callable[[str], None] | None = None,
) -> ModelReply:
    """Return the first reply that says something; `models` has at least one, the preferred first.

    When one only gave an empty answer and none after it did better, that answer is returned.
    A request that is too long for one model goes on only to those with a larger window. Once a
    part of an answer was shown, the next model answers without showing its text as it grows: what
    was shown cannot be taken back, and only the whole reply is the answer.

    Raises:
        ModelError: The failure that says best what can be done: shorten the conversation when the
            preferred model finds it too long, wait and repeat when one of them may answer later,
            else what the preferred model said.
    """
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        shown = True
        if on_text is not None:
            on_text(text)

    failures: list[ModelError] = []
    empty: ModelReply | None = None
    window: int | None = None
    for model in models:
        if not _may_fit(model, larger_than=window):
            continue
        if failures:
            logger.warning("%s; asking %s instead", failures[-1], model.name)
        listener = show if on_text is not None and not shown else None
        try:
            reply = await model.complete(request, on_text=listener)
        except ModelError as error:
            failures.append(error)
            if isinstance(error, ContextTooLong):
                window = max(window or 0, model.context_window or 0)
            continue
        if reply.calls or reply.text.strip():
            return reply
        failures.append(ModelUnavailable(model.name, "its answer was empty"))
        empty = empty or reply
    if empty is not None:
        return empty
    raise _most_useful(failures)


def _may_fit(model: ModelProvider, *, larger_than: int | None) -> bool:
    """Return whether it is worth asking; `larger_than` is a window that was too small, if any was."""
    if larger_than is None:
        return True
    return model.context_window is not None and model.context_window > larger_than > 0


def _most_useful(failures: Sequence[ModelError]) -> ModelError:
    if isinstance(failures[0], ContextTooLong):
        return failures[0]
    return next((error for error in failures if error.retryable), failures[0])
