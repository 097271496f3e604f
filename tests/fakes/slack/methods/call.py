"""What every method gets, and the questions most of them ask."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fakes.slack import blocks
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.params import Params
from tests.fakes.slack.state import Channel, Json, Message, Team

if TYPE_CHECKING:
    from tests.fakes.slack.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call of the app in one workspace."""

    service: "Service"
    team: Team
    params: Params
    method: str

    def problem(self, *problems: str) -> None:
        self.service.violation(*(f"{self.method}: {problem}" for problem in problems))

    def channel(self, *, name: str = "channel", write: bool = False) -> Channel:
        return self.service.channel(self.team, self.params.text(name), write=write)

    def message(self, channel: Channel, *, name: str = "ts") -> Message:
        """Return a message of the app's own.

        Raises:
            ApiError: there is none.
        """
        shown = channel.messages.get(self.params.text(name))
        if shown is None or shown.deleted or shown.ephemeral_to:
            raise ApiError("message_not_found")
        return shown

    def body(self, *, update: bool = False) -> Json:
        """Return text and blocks, judged.

        Raises:
            ApiError: Slack would not take them.
        """
        params = self.params
        text, given = params.text("text"), params.array("blocks")
        blocks.check(given)
        if not text and not given:
            raise ApiError("no_text")
        if not text:
            self.problem("blocks without a text to fall back on")
        if len(text) > blocks.MAX_TEXT:
            raise ApiError("msg_too_long")
        if update and len(text.encode()) > blocks.MAX_UPDATE_BYTES:
            raise ApiError("msg_too_long")
        if params.flag("link_names") or params.text("parse") == "full":
            self.problem("names would be linked")
        return {"text": text, "blocks": given}


Method = Callable[[Asked], Awaitable[Json]]
