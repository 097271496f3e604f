"""The adapter under the whole runtime and a real store, against the test server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.telegram.adapter import open_telegram
from adapters.telegram.config import ReplyTo
from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.traffic import BURST_MS, SEND_COST_MS
from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import FieldKind, Form, FormField
from gateway.ports import Approver, FormRequest
from gateway.runtime.access import Access
from gateway.runtime.clock import SystemClock
from gateway.runtime.config import AccessConfig
from gateway.runtime.delivery import Budget
from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig
from store import open_store
from tests.adapters.telegram.rig import TOKEN, account
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.telegram import UNLIMITED, Fault, Town, Trouble, telegram_server
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = tool("add_note")
PACE = Budget(cost_ms=SEND_COST_MS, burst_ms=BURST_MS)


@asynccontextmanager
async def living(
    home: Path, town: Town, model: ScriptedModel, tools: FakeTools, *, paced: bool = True
) -> AsyncGenerator[Runtime]:
    """Run a gateway with one bot until the end of the block, which is a clean shutdown."""
    clock = SystemClock()
    configured = account(town, reply_to=ReplyTo.FIRST)
    async with (
        open_store(home / "state.db", clock=clock) as opened,
        open_telegram(
            configured, sent=opened.readers.sent, chats=opened.store, clock=clock
        ) as adapter,
        asyncio.TaskGroup() as tasks,
    ):
        runtime = Runtime(
            store=opened.store,
            readers=opened.readers,
            edges=Edges(
                provider=model,
                host=tools,
                adapters=[adapter],
                renderers={"telegram": TelegramRenderer()},
                answering={("telegram", ""): adapter},
                budgets={("telegram", ""): PACE} if paced else {},
            ),
            access=Access(AccessConfig(), allowed={"telegram": frozenset({"111"})}),
            clock=clock,
            config=RuntimeConfig(),
        )
        tasks.create_task(runtime.run(), name="runtime")
        try:
            yield runtime
        finally:
            runtime.stop()


@requirement("platform.telegram.base_url", "case.t1")
async def test_a_message_becomes_a_card_and_a_press_runs_the_tool_once(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(ADD, gated=True)
    model = ScriptedModel([calls((ADD.alias, {"text": "milk"})), says("**Noted.**")])
    async with telegram_server() as town:
        ana, ben = town.user(111, "Ana"), town.user(222, "Ben")
        chat = town.supergroup("Team", ana, ben, bot=town.bot(TOKEN), bot_status="administrator")
        async with living(tmp_path, town, model, tools):
            asked = await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)

            refused = await (await chat.press("Allow once", by=ben)).answered()
            assert "can decide this" in refused.text
            assert tools.ran == []

            deny = card.data_of("Deny")
            await (await chat.press("Allow once")).answered()
            reply = await chat.wait_for_reply("Noted.")
            await town.until(lambda: not card.labels, what="the closed card")

            assert tools.ran == [(ADD.name, '{"text":"milk"}')]
            assert "Allowed once by Ana" in card.text
            assert reply.reply_to == asked.id
            assert reply.entities[0]["type"] == "bold"

            late = await (await chat.press("Deny", data=deny, message=card)).answered()
            assert "Already settled" in late.text


@requirement("elicitation.form.surfaces")
async def test_a_form_is_answered_by_replies_and_buttons(tmp_path: Path) -> None:
    form = Form(
        message="What shall I write?",
        fields=(
            FormField(name="title", kind=FieldKind.TEXT, label="Title", maximum=9),
            FormField(name="loud", kind=FieldKind.BOOLEAN, label="Loud"),
            FormField(name="tag", kind=FieldKind.TEXT, label="Tag", required=False),
        ),
    )

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        del arguments
        request = FormRequest(server="demo", server_sha="s", tool="add_note", form=form)
        answer = await approver.elicit(request)
        return f"got {answer.content}"

    tools = FakeTools()
    tools.add(ADD, run)
    model = ScriptedModel([calls((ADD.alias, {})), says("Written.")])
    async with telegram_server(rates=UNLIMITED) as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with living(tmp_path, town, model, tools, paced=False):
            await chat.say("write")
            prompt = await chat.wait_for(lambda m: m.markup and "force_reply" in m.markup)
            await chat.say("far too long for it", reply_to=prompt)
            again = await chat.wait_for(
                lambda m: m.id > prompt.id and m.markup and "force_reply" in m.markup, seconds=20
            )
            assert await chat.wait_for_reply("at most 9 characters")
            await chat.say("milk", reply_to=again)
            await chat.wait_for(lambda m: "Yes" in m.labels, seconds=20)
            await chat.press("Yes")
            await chat.wait_for(lambda m: "Skip" in m.labels, seconds=20)
            await chat.press("Skip")
            review = await chat.wait_for(lambda m: "Submit" in m.labels, seconds=20)
            assert "Title: milk" in review.text
            await chat.press("Submit")

            await chat.wait_for_reply("Written.", seconds=20)
            assert "{'loud': True, 'title': 'milk'}" in model.requests[-1].history[-1].text


@requirement("fault.f6", "delivery.unknown_outcome", "fault.f22")
@pytest.mark.parametrize("trouble", [Trouble.CUT_AFTER, Trouble.CUT_BEFORE])
async def test_a_reply_whose_answer_is_lost_is_shown_once_and_unmarked(
    tmp_path: Path, trouble: Trouble
) -> None:
    model = ScriptedModel([says("The answer.")])
    async with telegram_server() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(Fault(trouble=trouble, method="sendMessage"))
        async with living(tmp_path, town, model, FakeTools()):
            await chat.say("hello")
            await chat.wait_for_reply("The answer.")
            await town.until(lambda: town.count("editMessageText"), what="a probe")

        assert chat.texts == ["The answer."]


@requirement("case.t22", "fault.f26")
async def test_one_update_delivered_again_after_a_restart_is_one_message(tmp_path: Path) -> None:
    async with telegram_server() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with living(tmp_path, town, ScriptedModel([says("One.")]), FakeTools()):
            await chat.say("hello")
            await chat.wait_for_reply("One.")
            await town.until(lambda: not bot.pending)
        bot.redeliver(times=2)
        model = ScriptedModel([says("Two.")])
        async with living(tmp_path, town, model, FakeTools()):
            await chat.say("again")
            await chat.wait_for_reply("Two.")
            await town.until(lambda: not bot.pending)

        assert chat.texts == ["One.", "Two."]
        assert len(model.requests) == 1
