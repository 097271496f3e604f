"""What people do in channels, and what they see: the side of the server a test works with."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.fakes.slack import blocks, payloads
from tests.fakes.slack.outbox import Given
from tests.fakes.slack.posting import change, delete, post
from tests.fakes.slack.service import Service
from tests.fakes.slack.state import Channel, Json, Message, Person, StoredFile, Team, View

WAIT_SECONDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """A press, a command or a submitted modal; `given` shows how the app took it."""

    service: Service
    given: Given

    async def acknowledged(self, *, seconds: float = WAIT_SECONDS) -> Json:
        """Return what the app answered to it.

        Raises:
            AssertionError: It did not in time: the person sees a warning sign.
        """
        await self.service.until(lambda: self.given.over, seconds=seconds, what="an end of it")
        assert self.given.answer is not None, f"{self.given.kind} was never acknowledged"
        return self.given.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelDriver:
    """One channel, or one `thread` of it. Whoever acts is `by`; without it the first person."""

    service: Service
    team: Team
    state: Channel
    people: list[Person] = field(default_factory=list[Person])
    thread: str = ""

    @property
    def id(self) -> str:
        return self.state.id

    def inside(self, root: Message) -> "ChannelDriver":
        """Return the thread below a message."""
        return replace(self, thread=root.ts)

    @property
    def everything(self) -> list[Message]:
        """What anybody sees, in the channel and its threads, oldest first."""
        found = [m for m in self.state.messages.values() if not m.deleted]
        return [m for m in found if not m.ephemeral_to]

    @property
    def messages(self) -> list[Message]:
        """What is in the channel itself, or in the thread."""
        if self.thread:
            return [m for m in self.everything if self.thread in (m.ts, m.thread_ts)]
        return [m for m in self.everything if m.thread_ts in ("", m.ts)]

    @property
    def replies(self) -> list[Message]:
        return [m for m in self.messages if m.by_bot]

    @property
    def texts(self) -> list[str]:
        return [self.read(m) for m in self.replies]

    def whispers(self, to: str = "") -> list[str]:
        """What the app showed to somebody alone."""
        found = [m for m in self.state.messages.values() if m.ephemeral_to]
        return [self.read(m) for m in found if to in ("", m.ephemeral_to)]

    @staticmethod
    def read(message: Message) -> str:
        """Return what people read of a message."""
        return blocks.shown(message.blocks, message.text)

    async def wait_for(
        self, wanted: Callable[[Message], Any], *, what: str = "such a message"
    ) -> Message:
        """Return the first message shown that is wanted, as soon as there is one."""

        def found() -> Message | None:
            return next((m for m in self.everything if wanted(m)), None)

        try:
            return await self.service.until(found, seconds=WAIT_SECONDS, what=what)
        except AssertionError as error:
            shown = [(m.ts, m.user, self.read(m), m.labels) for m in self.everything]
            raise AssertionError(f"{error}; the channel shows {shown}") from None

    async def wait_for_reply(self, saying: str) -> Message:
        return await self.wait_for(
            lambda m: m.by_bot and not m.streaming and saying in self.read(m), what=repr(saying)
        )

    def say(
        self,
        text: str = "",
        *,
        by: Person | None = None,
        calling: bool = False,
        blocks: Sequence[Json] = (),
        attachments: Sequence[Json] = (),
        files: Sequence[StoredFile] = (),
    ) -> Message:
        """Write a message; `calling` names the bot in front of it."""
        called = f"<@{self.team.bot_user}> {text}" if calling else text
        return post(
            self.service,
            self.team,
            self.state,
            user=self._by(by).id,
            text=called,
            thread_ts=self.thread,
            blocks=list(blocks),
            attachments=list(attachments),
            files=[file.id for file in files],
            subtype="file_share" if files else "",
        )

    def upload(
        self, name: str, data: bytes, *, media_type: str, size: int | None = None
    ) -> StoredFile:
        """Store a file of a person's, for `say`."""
        stored = StoredFile(
            id=f"F{self.service.world.number():08d}",
            name=name,
            title=name,
            media_type=media_type,
            size=len(data) if size is None else size,
            data=data,
            uploaded=True,
        )
        self.team.files[stored.id] = stored
        return stored

    def edit(self, message: Message, text: str) -> None:
        change(self.service, self.team, self.state, message, text=text)

    def delete(self, message: Message) -> None:
        delete(self.service, self.team, self.state, message)

    def press(
        self, label: str, *, message: Message | None = None, by: Person | None = None
    ) -> Pressed:
        """Press a button as it is shown now, of the newest message that has one of that label."""
        if message is None:
            message = next(m for m in reversed(self.everything) if label in m.labels)
        element = next(e for e in message.elements if e["text"]["text"] == label)
        return self.press_element(element, message=message, by=by)

    def press_element(
        self, element: Json, *, message: Message, by: Person | None = None
    ) -> Pressed:
        """Press a button some client still shows, whatever became of its message."""
        body = payloads.press(self.service, self.team, self._by(by).id, message, element, "actions")
        return self._interact("interactive", body)

    def command(self, text: str, *, by: Person | None = None) -> Pressed:
        """Give `/hermes <text>`; Slack tells no thread of a command."""
        body = payloads.slash(self.service, self.team, self.state, self._by(by).id, text)
        return self._interact("slash_commands", body)

    async def modal(self, *, by: Person | None = None) -> View:
        """Return the modal that is open for somebody."""
        user = self._by(by).id

        def newest() -> View | None:
            views = [v for v in self.service.world.views.values() if v.open and v.user == user]
            return views[-1] if views else None

        return await self.service.until(newest, what="a modal")

    async def submit(self, view: View, values: Mapping[str, Any]) -> Json:
        """Fill a modal in, by the labels of its inputs, and send it; returns the app's answer.

        Raises:
            NotSent: Slack's client does not send it.
        """
        body = payloads.interaction(self.service, self.team, view.user, "view_submission")
        state = _state(view.body, values)
        shown = view.body | {"id": view.id, "team_id": view.team, "hash": view.hash}
        body["view"] = shown | {"state": {"values": state}}
        answer = await self._interact("interactive", body).acknowledged()
        if answer.get("response_action") == "update":
            blocks.check_view(answer["view"])
            view.body = answer["view"]
        elif answer.get("response_action") == "errors":
            unknown = set(answer["errors"]) - {b.get("block_id") for b in view.body["blocks"]}
            assert not unknown, f"errors for blocks that are not there: {unknown}"
        else:
            view.open = False
        self.service.changes.note()
        return answer

    def _interact(self, kind: str, body: Json) -> Pressed:
        return Pressed(service=self.service, given=self.service.outbox.give(kind, body))

    def _by(self, person: Person | None) -> Person:
        return person or self.people[0]


class NotSent(Exception):
    """Slack's client does not send a modal: it says why below an input."""


def _state(view: Json, values: Mapping[str, Any]) -> Json:
    """Return the state of a modal as Slack tells it: what is left alone has its first value.

    Inputs go by a part of their label; "" empties one.

    Raises:
        NotSent: An input does not take what is in it.
    """
    state: Json = {}
    used: set[str] = set()
    for block in (b for b in view["blocks"] if b["type"] == "input"):
        label, element = block["label"]["text"], block["element"]
        named = next((name for name in values if name in label), None)
        used |= {named} if named is not None else set()
        told = _filled(element, None if named is None else values[named])
        content = [told.get(key) for key in _CONTENT if told.get(key) not in (None, "", [])]
        if not content and not block.get("optional"):
            raise NotSent(f"{label}: please complete this required field")
        date = told.get("selected_date")
        if date and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
            raise NotSent(f"{label}: a date is picked, not written")
        if content and "value" in told:
            _check_typed(element, str(told["value"]), label)
        state[block["block_id"]] = {element["action_id"]: told}
    assert used == set(values), f"the modal does not ask for {set(values) - used}"
    return state


_CONTENT: Final = ("value", "selected_option", "selected_options", "selected_date")


def _filled(element: Json, value: Any) -> Json:
    kind = element["type"]
    options = {o["text"]["text"]: o for o in element.get("options", [])}
    chosen_names = [value] if isinstance(value, str) else value or []
    if options and (unknown := [name for name in chosen_names if name and name not in options]):
        raise NotSent(f"there is no {unknown[0]!r} to choose")
    if kind in ("static_select", "radio_buttons"):
        chosen = element.get("initial_option") if value is None else options.get(value)
        return {"type": kind, "selected_option": chosen}
    if kind in ("multi_static_select", "checkboxes"):
        wanted = [value] if isinstance(value, str) and value else value
        first = element.get("initial_options", [])
        chosen = first if value is None else [options[name] for name in wanted or ()]
        return {"type": kind, "selected_options": chosen}
    if kind == "datepicker":
        return {
            "type": kind,
            "selected_date": element.get("initial_date") if value is None else value,
        }
    return {"type": kind, "value": element.get("initial_value") if value is None else value}


def _check_typed(element: Json, text: str, label: str) -> None:
    problem = ""
    if len(text) > element.get("max_length", 3_000):
        problem = f"at most {element.get('max_length', 3_000)} characters"
    elif len(text) < element.get("min_length", 0):
        problem = f"at least {element['min_length']} characters"
    elif element["type"] == "number_input":
        problem = _number_problem(element, text)
    elif element["type"] == "email_text_input" and "@" not in text:
        problem = "a valid email address"
    if problem:
        raise NotSent(f"{label}: please enter {problem}")


def _number_problem(element: Json, text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return "a valid number"
    if not element["is_decimal_allowed"] and not number.is_integer():
        return "a whole number"
    if number < float(element.get("min_value", number)):
        return f"a number that is at least {element['min_value']}"
    if number > float(element.get("max_value", number)):
        return f"a number that is at most {element['max_value']}"
    return ""
