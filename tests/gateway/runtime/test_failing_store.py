"""Presses while the database fails: the card stays, the presser is told, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.domain.delivery import Delivery, DeliveryKind
from gateway.domain.errors import Conflict, DeliveryRejected, StoreBusy, StoreError
from gateway.domain.operations.questions import Decide, Ruling
from gateway.ports import Store
from gateway.runtime.control import FAILED
from tests.fakes.house import running
from tests.fakes.loopback import PLATFORM, Loopback
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

NOTE = tool("add_note")


class Failing:
    """A store whose first decisions are not written."""

    def __init__(self, store: Store, *errors: Exception) -> None:
        self._store = store
        self._errors = list(errors)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def decide(self, decide: Decide) -> Ruling:
        if self._errors:
            raise self._errors.pop(0)
        return await self._store.decide(decide)


def failing(*errors: Exception) -> Callable[[Store], Store]:
    return lambda store: Failing(store, *errors)  # pyright: ignore[reportReturnType]


def gated() -> tuple[FakeTools, ScriptedModel]:
    tools = FakeTools()
    tools.add(NOTE, gated=True)
    return tools, ScriptedModel([calls((NOTE.alias, {"text": "milk"})), says("Noted.")])


@requirement("case.ap7")
async def test_a_first_click_that_cannot_be_written_is_told_and_the_second_one_counts(
    tmp_path: Path,
) -> None:
    tools, model = gated()
    broken: list[Exception] = [Conflict("the disk"), RuntimeError("boom")]
    async with running(tmp_path, model, tools=tools, watch=failing(*broken)) as house:
        await house.say("note milk")
        for number, error in enumerate(broken):
            await house.press("Allow once")
            told = (await house.replies(number + 1))[-1]
            assert told == (error.public_message if isinstance(error, StoreError) else FAILED)
            assert house.rows("SELECT state FROM question") == [("pending",)]
        assert tools.ran == []
        assert not [item for item in house.adapter.sent if item.kind is DeliveryKind.EDIT]

        await house.press("Allow once")
        await house.adapter.until(lambda: "Noted." in house.adapter.texts())

        assert tools.ran == [(NOTE.name, '{"text":"milk"}')]


@requirement("case.ap5")
async def test_a_card_the_platform_refuses_ends_its_call_at_once_with_the_reason(
    tmp_path: Path,
) -> None:
    def refuse(delivery: Delivery) -> None:
        if delivery.kind is DeliveryKind.CARD:
            raise DeliveryRejected(PLATFORM, "kicked")

    tools, model = gated()
    async with running(
        tmp_path, model, tools=tools, adapter=Loopback(on_send=refuse), clock=ManualClock()
    ) as house:
        await house.say("note milk")
        await house.replies(1)

        assert "the card could not be delivered" in model.requests[-1].history[-1].text
        assert tools.ran == []


@requirement("case.ap7")
async def test_a_click_while_the_database_is_locked_counts_once_it_is_free(tmp_path: Path) -> None:
    tools, model = gated()
    async with running(
        tmp_path, model, tools=tools, watch=failing(StoreBusy("locked"), StoreBusy("locked"))
    ) as house:
        await house.say("note milk")
        await house.press("Allow once")
        await house.adapter.until(lambda: "Noted." in house.adapter.texts())

        assert len(tools.ran) == 1
