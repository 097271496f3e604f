"""Builds the requests of one turn within a size, and compacts its session when it outgrows that."""

import logging
from collections.abc import Sequence
from typing import Final

from gateway.domain.conversation import Role, StoredMessage
from gateway.domain.errors import ModelError
from gateway.domain.ids import MessageId
from gateway.domain.message import InboundMessage
from gateway.domain.model import ModelMessage, ModelRequest, UserSaid
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import Claim, Compact, Purpose, UsageRecord
from gateway.ports import Clock, Conversations, ModelProvider, TurnStore
from gateway.runtime.file_view import FileView
from gateway.runtime.history import (
    earlier,
    fitted,
    is_shared,
    newest_within,
    said_before,
    said_by_people,
    said_by_rounds,
    said_now,
    words_of,
)
from gateway.runtime.model_call import ModelCaller
from gateway.runtime.persist import persist
from gateway.runtime.prompt import listing_budget, system_prompt
from gateway.runtime.steps import Round
from gateway.runtime.tokens import (
    CHARACTERS_PER_TOKEN,
    function_tokens,
    message_tokens,
    tokens_in,
    window_of,
)
from gateway.runtime.toolbox import Toolbox

logger = logging.getLogger(__name__)

MAX_MESSAGES: Final = 200
"""Of a session that are ever sent; reaching it compacts."""
KEPT_MESSAGES: Final = 20
"""The newest ones that compaction leaves as they are."""
KEPT_SHARE: Final = 0.2
COMPACT_SHARE: Final = 0.5
"""Of the window a session's messages may take before they are compacted."""
REQUEST_SHARE: Final = 0.75
"""Of the window a request may take; the rest is for the reply and the error of the estimate."""
SHRUNK_SHARE: Final = 0.35
SUMMARY_TOKENS: Final = 2_000
MIN_HISTORY_TOKENS: Final = 500

_SUMMARY_PROMPT: Final = (
    "Summarise the conversation you are given for yourself, so that you can go on with it: "
    "what the people want, what was decided and done, names, numbers, open ends. "
    "Write plain text in the language of the conversation, at most 400 words, and nothing else."
)


class Context:
    """What one turn tells its model; messages it is to do `without` are left out."""

    def __init__(
        self,
        *,
        claim: Claim,
        conversations: Conversations,
        store: TurnStore,
        caller: ModelCaller,
        provider: ModelProvider,
        toolbox: Toolbox,
        clock: Clock,
        configured_prompt: str,
        without: Sequence[MessageId] = (),
        files: FileView,
    ) -> None:
        self._claim = claim
        self._conversations = conversations
        self._store = store
        self._caller = caller
        self._provider = provider
        self._toolbox = toolbox
        self._clock = clock
        self._configured = configured_prompt
        self._without = frozenset(without)
        self._files = files
        self._window = window_of(provider.context_window)
        self._share = REQUEST_SHARE
        self._stored: tuple[StoredMessage, ...] = ()

    async def load(self) -> None:
        """Read the session, and compact it when it takes too much of the window."""
        if not any(isinstance(item.event, InboundMessage) for item in self._claim.inputs):
            return
        found = await persist(
            lambda: self._conversations.history(
                self._claim.session, limit=MAX_MESSAGES + len(self._claim.inputs)
            ),
            clock=self._clock,
        )
        known = earlier(found, self._claim)
        self._stored = tuple(item for item in known if item.id not in self._without)
        await self._look_at_files()
        large = message_tokens(self._said()) > self._window * COMPACT_SHARE
        if large or len(self._stored) >= MAX_MESSAGES:
            await self._compact()

    async def _look_at_files(self) -> None:
        """Wait for the files of what is answered, and look at earlier ones as long as there is room."""
        await self.attend(self._claim.inputs)
        for message in reversed(self._stored):
            if message.attachments and message.role is Role.USER:
                await self._files.look_at(message.id, message.attachments)

    async def look_at_answers(self, rounds: Sequence[Round]) -> None:
        """Look at the pictures that tools gave, the newest as long as there is room."""
        for item in rounds:
            for step in item.steps:
                for file in () if step.answer is None else step.answer.files:
                    await self._files.look_at_answer(file)

    async def attend(self, inputs: Sequence[StoredInbound]) -> None:
        """Wait for the files of messages that are about to be shown."""
        await self._files.wait_for(
            [
                item.message
                for item in inputs
                if isinstance(item.event, InboundMessage)
                and item.event.attachments
                and item.message is not None
            ]
        )

    async def shrink(self) -> None:
        """Make the next request a good deal smaller: the model said that the last was too long."""
        self._share = SHRUNK_SHARE
        await self._compact()

    def request(
        self, rounds: Sequence[Round], joined: Sequence[StoredInbound] = ()
    ) -> ModelRequest:
        """Return the next request of the turn; `joined` came after the last round."""
        functions = self._toolbox.functions()
        host = self._toolbox.host
        system = system_prompt(
            configured=self._configured,
            today=self._clock.now().astimezone().date(),
            servers=host.servers(),
            tools=self._toolbox.offered(),
            deferred=self._toolbox.deferred,
            listing_tokens=listing_budget(self._toolbox.config, self._provider.context_window),
        )
        shared, looked = is_shared(self._claim.place), self._files.looked
        taken = tokens_in(system) + function_tokens(functions)
        history = fitted(
            self._said(),
            said_now(self._claim, looked=looked),
            (
                *said_by_rounds(rounds, shared=shared, looked=looked),
                *said_by_people(joined, shared=shared, looked=looked),
            ),
            budget=max(int(self._window * self._share) - taken, MIN_HISTORY_TOKENS),
        )
        return ModelRequest(system=system, history=history, functions=functions)

    def _said(self) -> tuple[ModelMessage, ...]:
        shared, looked = is_shared(self._claim.place), self._files.looked
        return tuple(said_before(message, shared=shared, looked=looked) for message in self._stored)

    async def _compact(self) -> None:
        dropped, kept = self._split()
        if not dropped or self._provider.asks_person:
            return
        try:
            summary, usage = await self._summarise(dropped)
        except ModelError as error:
            logger.warning("not compacted, older messages are left out: %s", error)
            return
        if not summary:
            logger.warning("not compacted, the model gave no summary")
            return
        compact = Compact(
            session=self._claim.session,
            first=min(
                (
                    *(message.id for message in kept[:1]),
                    *(item.message for item in self._claim.inputs if item.message is not None),
                )
            ),
            summary=summary,
            usage=(usage,),
        )
        await persist(lambda: self._store.compact(compact), clock=self._clock)
        last = dropped[-1]
        self._stored = (
            StoredMessage(
                id=last.id,
                session=last.session,
                role=Role.SUMMARY,
                author=last.author,
                text=summary,
                at=last.at,
            ),
            *kept,
        )
        logger.info("compacted %d messages, kept %d", len(dropped), len(kept))

    def _split(self) -> tuple[tuple[StoredMessage, ...], tuple[StoredMessage, ...]]:
        said = self._said()[-KEPT_MESSAGES:]
        count = len(newest_within(said, int(self._window * self._share * KEPT_SHARE)))
        at = len(self._stored) - count
        if at == 1 and self._stored[0].role is Role.SUMMARY:
            return (), self._stored
        return self._stored[:at], self._stored[at:]

    async def _summarise(self, dropped: Sequence[StoredMessage]) -> tuple[str, UsageRecord]:
        room = int(self._window * self._share) - SUMMARY_TOKENS - tokens_in(_SUMMARY_PROMPT)
        each = max(room // len(dropped), 1) * CHARACTERS_PER_TOKEN
        lines = [f"{_speaker(message)}: {words_of(message)[:each]}" for message in dropped]
        request = ModelRequest(
            system=_SUMMARY_PROMPT,
            history=(UserSaid(text="\n\n".join(lines)),),
            max_tokens=SUMMARY_TOKENS,
        )
        timed = await self._caller.ask(
            self._provider, request, conversation=self._claim.place.session_key
        )
        usage = UsageRecord(
            purpose=Purpose.SUMMARY,
            model=timed.reply.model,
            usage=timed.reply.usage,
            ms=timed.ms,
        )
        return timed.reply.text.strip(), usage


def _speaker(message: StoredMessage) -> str:
    if message.role is Role.USER:
        return message.author.name or message.author.id
    return "Earlier summary" if message.role is Role.SUMMARY else "You"
