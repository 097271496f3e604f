"""What is said in a chat beside the cards: that a call waits elsewhere, that a question was declined."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from gateway.domain.canonical import sha256_of
from gateway.domain.delivery import Origin
from gateway.domain.ids import Place
from gateway.domain.operations.deliveries import Enqueue
from gateway.domain.question import Question
from gateway.domain.text import fenced
from gateway.domain.tools import ToolCall, ToolSpec
from gateway.ports import DeliveryStore, FormRequest, Renderer
from gateway.runtime.cards import card_view, deciders, one_line
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.drafts import Draft
from gateway.runtime.routing import Routed
from gateway.runtime.wakeups import Wakeups


class Notices:
    """Says each thing once, however often it is asked to."""

    def __init__(
        self, store: DeliveryStore, renderers: Mapping[str, Renderer], wakeups: Wakeups
    ) -> None:
        self._store = store
        self._renderers = renderers
        self._wakeups = wakeups

    async def say(self, place: Place, markdown: str, *, key: str) -> None:
        """Say something in a place, unless it was said there under this key before."""
        renderer = self._renderers.get(place.platform)
        if renderer is None:
            return
        await self._store.enqueue(
            Enqueue(
                place=place,
                group_key=key,
                parts=renderer.text(markdown),
                origin=Origin.NOTICE,
            )
        )
        self._wakeups.deliveries()

    async def asked_elsewhere(
        self, question: Question, draft: Draft, routed: Routed, *, config: ApprovalsConfig
    ) -> None:
        """Say where the call comes from that it waits, and to further admins what it is."""
        # A row has no names.
        question = replace(question, requester=draft.call.requester)
        if not routed.shown_in.shows_same_as(question.place):
            who = deciders(question.approvers, question.requester)
            await self.say(
                question.place, f"Waiting for approval by {who}.", key=f"waits:{question.id}"
            )
        text = _in_words(question, draft, now=question.created_at, config=config)
        for place in routed.told:
            await self.say(place, text, key=f"told:{question.id}:{place.session_key}")

    async def not_asked(self, call: ToolCall, spec: ToolSpec, *, reason: str) -> None:
        """Say that a call was not run because its approval could not be asked for."""
        text = f"{one_line(spec.server)} · {one_line(spec.name)} was not run: {reason}."
        await self.say(call.place, text, key=f"unasked:{call.turn}:{call.step}:{call.id}")

    async def declined(self, call: ToolCall, request: FormRequest) -> None:
        """Say that a server asked something that cannot be asked, and why."""
        text = f"{one_line(request.server)} asked something that was declined: {request.problem}"
        digest = sha256_of(f"{request.form.message}\n{request.problem}")[:16]
        await self.say(call.place, text, key=f"declined:{call.turn}:{call.step}:{call.id}:{digest}")

    async def of_call(self, call: ToolCall, text: str) -> None:
        """Say something about a call where it comes from."""
        key = f"call:{call.turn}:{call.step}:{call.id}:{sha256_of(text)[:16]}"
        await self.say(call.place, text, key=key)

    async def link(self, call: ToolCall, request: FormRequest) -> None:
        """Give the link that somebody agreed to open."""
        text = f"The link of {one_line(request.server)}: <{request.url}>"
        key = f"link:{call.turn}:{call.step}:{call.id}:{sha256_of(request.url)[:16]}"
        await self.say(call.place, text, key=key)


def _in_words(question: Question, draft: Draft, *, now: datetime, config: ApprovalsConfig) -> str:
    """Return a card without buttons; nothing a server wrote is read as markup."""
    view = card_view(question, draft.prompt, now=now, config=config)
    text = "\n".join(part for part in (view.title, view.text, view.arguments, *view.lines) if part)
    return f"{fenced(text)}\nDecide with `/approve {question.short}` or `/deny {question.short}`."
