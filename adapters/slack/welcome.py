"""Suggested prompts for somebody who opens the assistant: what can be asked for, to begin with."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from adapters.slack.client import Client
from gateway.domain.errors import AdapterError

logger = logging.getLogger(__name__)

PROMPTS: Final = (
    ("What can you do?", "/help"),
    ("Which tools are there?", "/tools"),
    ("How are you connected?", "/status"),
)
MAX_PROMPTS: Final = 4


class Welcome:
    """Shows them; cosmetic, so that a failure is only noted."""

    def __init__(self, client: Client, prompts: Sequence[tuple[str, str]] = PROMPTS) -> None:
        self._client = client
        self._prompts = prompts[:MAX_PROMPTS]

    async def show(self, event: Mapping[str, Any]) -> None:
        """Show the prompts in the thread that was opened."""
        thread = cast("Mapping[str, Any]", event.get("assistant_thread") or {})
        prompts = [{"title": title, "message": message} for title, message in self._prompts]
        try:
            await self._client.post(
                "assistant.threads.setSuggestedPrompts",
                channel_id=thread.get("channel_id"),
                thread_ts=thread.get("thread_ts"),
                prompts=prompts,
            )
        except AdapterError as error:
            logger.debug("no prompts were suggested: %s", error)
