"""What `/model` answers, and the choice an admin makes with it for a session."""

import logging
from typing import Final, Protocol

from gateway.domain.errors import ModelError
from gateway.domain.ids import Place
from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.upkeep import SetModel
from gateway.ports import Conversations, ModelProvider
from gateway.runtime.access import Access
from gateway.runtime.cards import one_line
from gateway.runtime.command_replies import Replies
from gateway.runtime.config import PersonRole
from gateway.runtime.model_choice import ModelChoice

logger = logging.getLogger(__name__)

DEFAULT: Final = "default"
MAX_NAME: Final = 200
CONFIGURE: Final = "`hermes config set model PROVIDER:NAME` configures one for all"


class ModelStore(Protocol):
    """Where the choice is kept."""

    async def set_model(self, model: SetModel) -> None: ...


class ModelReplies:
    """Shows which model answers in a session; admins may choose another."""

    def __init__(
        self, conversations: Conversations, store: ModelStore, access: Access, choice: ModelChoice
    ) -> None:
        self._conversations = conversations
        self._store = store
        self._access = access
        self._choice = choice

    @property
    def replies(self) -> Replies:
        """What answers its command."""
        return {"model": self._model}

    async def _model(self, stored: StoredInbound, event: CommandGiven) -> str:
        wanted = event.argument.strip()
        is_admin = self._access.role(event.sender, event.place) is PersonRole.ADMIN
        if not wanted:
            session = await self._conversations.session(stored.session)
            chosen = "" if session is None else session.model
            return f"{self._shown(event.place, chosen)} {self._how(is_admin=is_admin)}"
        if not is_admin:
            return "Only an admin may choose the model; /model alone shows it."
        if wanted.casefold() == DEFAULT:
            await self._store.set_model(SetModel(session=stored.session, model=""))
            return f"The choice is taken back. {self._shown(event.place, '')}"
        found = self._find(wanted)
        if isinstance(found, str):
            return found
        await self._store.set_model(SetModel(session=stored.session, model=found.name))
        logger.info(
            "model of session %d chosen by %s: %s", stored.session, event.sender, found.name
        )
        return (
            f"**{one_line(found.name)}** answers in this session from its next turn on. "
            f"`/model {DEFAULT}` takes that back."
        )

    def _find(self, wanted: str) -> ModelProvider | str:
        if self._choice.find is None:
            return f"No other model can be chosen here; {CONFIGURE}."
        if len(wanted) > MAX_NAME or len(wanted.split()) > 1:
            return "A model is named in one word: `/model PROVIDER:NAME`."
        try:
            return self._choice.find(wanted)
        except ModelError as error:
            return f"That model cannot be used: {one_line(error.problem, MAX_NAME)}."

    def _shown(self, place: Place, chosen: str) -> str:
        if chosen:
            return f"**{one_line(chosen)}** answers in this session: it was chosen with /model."
        provider = self._choice.model(place, chosen="")
        if provider.asks_person:
            return f"No model is configured, the guided mode answers; {CONFIGURE}."
        own = self._choice.overrides.of(place).provider is not None
        where = "as configured for this channel" if own else "as configured"
        return f"**{one_line(provider.name)}** answers here, {where}."

    def _how(self, *, is_admin: bool) -> str:
        if self._choice.find is None:
            return ""
        if not is_admin:
            return "An admin may choose another for this session."
        return (
            f"`/model PROVIDER:NAME` chooses another for this session, `/model {DEFAULT}` takes "
            "that back."
        )
