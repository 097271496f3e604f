"""Forms as modals: opened from the *Answer* button of a card, and what was filled in. One call, no state."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from adapters.slack.buttons import OPENS_FORM
from adapters.slack.client import Client
from adapters.slack.forms import values_of
from adapters.slack.ids import PLATFORM
from adapters.slack.inbound import Us, person_of
from adapters.slack.payload import Payload
from gateway.domain.delivery import SentMessage
from gateway.domain.errors import AdapterError
from gateway.domain.ids import ChatType, Place
from gateway.domain.message import FormSubmitted
from gateway.ports import Clock
from gateway.ports.reading import SentMessages

logger = logging.getLogger(__name__)

OPEN_SECONDS: Final = 2.0
"""The press is good for three."""
LOOKS: Final = 10
LOOK_SECONDS: Final = 0.1
"""Between looks for a card whose send is not in the books yet."""
CALLBACK: Final = "hermes-form"

Json = Mapping[str, Any]


def is_modal(body: Json) -> bool:
    """Whether somebody sent one of our modals."""
    view = cast("Json", body.get("view") or {})
    return body.get("type") == "view_submission" and view.get("callback_id") == CALLBACK


class Modals:
    """The modals of one account."""

    def __init__(self, client: Client, store: SentMessages, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._clock = clock

    async def open(self, body: Json, us: Us) -> None:
        """Open the modal of the pressed card; when that fails the presser is told so alone."""
        container = cast("Json", body.get("container") or {})
        channel, ts = str(container.get("channel_id")), str(container.get("message_ts"))
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                sent = await self._card(us, channel, ts)
                if sent is None:
                    raise LookupError
                form = Payload.from_json(sent.payload).form
                if not form:
                    raise LookupError
                token = str(cast("Sequence[Json]", body["actions"])[0]["action_id"])
                view = _view(form, sent.place, token.removeprefix(OPENS_FORM))
                await self._client.post("views.open", trigger_id=body.get("trigger_id"), view=view)
        except (AdapterError, LookupError, TimeoutError) as error:
            logger.warning("a form could not be opened: %s", error or "its card is not known")
            await self._tell(body, "The form could not be opened; please press the button again.")

    def submitted(
        self, body: Json, us: Us, name: Callable[[str], str], now: datetime
    ) -> FormSubmitted | None:
        """Return what was filled in."""
        view = cast("Json", body["view"])
        kept = cast("Json", json.loads(str(view.get("private_metadata") or "{}")))
        sender = person_of(body, name)
        if sender is None or not kept.get("token"):
            return None
        thread = str(kept.get("thread") or "")
        number = str(view.get("id"))
        return FormSubmitted(
            place=Place(
                platform=PLATFORM,
                account=us.account,
                chat=str(kept["chat"]),
                chat_type=ChatType(str(kept["type"])),
                thread=thread,
                participant=str(kept.get("participant") or ""),
            ),
            native_id=number,
            dedupe=us.dedupe("modal", number, str(view.get("hash"))),
            sender=sender,
            sent_at=now,
            token=str(kept["token"]),
            values=values_of(cast("Json", view.get("state") or {})),
            interaction=sender.id,
        )

    async def _card(self, us: Us, channel: str, ts: str) -> SentMessage | None:
        for _ in range(LOOKS):
            found = await self._store.find(PLATFORM, us.account, channel, (ts,))
            if found is not None:
                return found
            await self._clock.sleep(LOOK_SECONDS)
        return None

    async def _tell(self, body: Json, words: str) -> None:
        container = cast("Json", body.get("container") or {})
        user = cast("Json", body.get("user") or {})
        try:
            await self._client.post(
                "chat.postEphemeral",
                channel=container.get("channel_id"),
                user=user.get("id"),
                thread_ts=container.get("thread_ts"),
                text=words,
            )
        except AdapterError as error:
            logger.debug("nobody was told: %s", error)


def _view(form: Json, place: Place, token: str) -> Json:
    kept = {
        "token": token,
        "chat": place.chat,
        "type": place.chat_type.value,
        "thread": place.thread,
        "participant": place.participant,
    }
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "title": {"type": "plain_text", "text": "Your answer"},
        "submit": {"type": "plain_text", "text": "Continue"},
        "close": {"type": "plain_text", "text": "Back"},
        "private_metadata": json.dumps(kept),
        "blocks": form["blocks"],
    }
