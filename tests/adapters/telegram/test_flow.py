"""The adapter under the whole runtime and a real store, against the test server."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import pytest
from pydantic import SecretStr

from adapters.telegram.adapter import open_telegram
from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.traffic import BURST_MS, SEND_COST_MS
from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import FieldKind, Form, FormField
from gateway.ports import Approver, FormRequest
from gateway.runtime.access import Access
from gateway.runtime.clock import SystemClock
from gateway.runtime.config import AccessConfig, ApprovalsConfig
from gateway.runtime.delivery import Budget
from gateway.runtime.no_media import NoMedia
from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig
from store import open_store
from tests.adapters.telegram.rig import TOKEN, account
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.telegram import UNLIMITED, Fault, Town, Trouble, telegram_server
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = tool("add_note")
ONE_BOT = MappingProxyType({"": TOKEN})
PACE = Budget(cost_ms=SEND_COST_MS, burst_ms=BURST_MS)


@asynccontextmanager
async def living(
    home: Path,
    town: Town,
    model: ScriptedModel,
    tools: FakeTools,
    *,
    paced: bool = True,
    expiry: float = 300,
    bots: Mapping[str, str] = ONE_BOT,
    admins: frozenset[str] = frozenset(),
) -> AsyncGenerator[Runtime]:
    """Run a gateway with bots (tokens by account) until the block ends, which is a clean shutdown."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_store(home / "state.db", clock=clock))
        adapters = {
            name: await stack.enter_async_context(
                open_telegram(
                    account(town, name=name, token=SecretStr(town.bot(token).token)),
                    sent=opened.readers.sent,
                    chats=opened.store,
                    media=NoMedia(),
                    clock=clock,
                )
            )
            for name, token in bots.items()
        }
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        runtime = Runtime(
            store=opened.store,
            readers=opened.readers,
            edges=Edges(
                provider=model,
                host=tools,
                adapters=list(adapters.values()),
                renderers={"telegram": TelegramRenderer()},
                answering={("telegram", name): item for name, item in adapters.items()},
                budgets={("telegram", name): PACE for name in adapters} if paced else {},
            ),
            access=Access(AccessConfig(admins=admins), allowed={"telegram": frozenset({"111"})}),
            clock=clock,
            config=RuntimeConfig(approvals=ApprovalsConfig(timeout=expiry)),
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


@requirement("case.t4")
async def test_a_press_on_an_expired_card_is_told_so_and_never_comes_again(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(ADD, gated=True)
    model = ScriptedModel([calls((ADD.alias, {"text": "milk"})), says("It was not allowed.")])
    async with telegram_server() as town:
        bot = town.bot(TOKEN)
        chat = town.private(town.user(111, "Ana"), bot=bot)
        async with living(tmp_path, town, model, tools, expiry=1):
            await chat.say("note milk")
            card = await chat.wait_for(lambda message: message.labels)
            allow = card.data_of("Allow once")
            await town.until(lambda: not card.labels, what="the expired card")

            press = await (await chat.press(data=allow, message=card)).answered()
            await chat.wait_for_reply("It was not allowed.")
            await town.until(lambda: not bot.pending)

            assert "Too late: it was not run" in press.text
            assert "Expired" in card.text
            assert tools.ran == []


@requirement("case.t5", "platform.accounts")
async def test_a_card_of_one_bot_is_decided_by_a_press_that_reaches_that_bot(
    tmp_path: Path,
) -> None:
    tools = FakeTools()
    tools.add(ADD, gated=True)
    model = ScriptedModel([calls((ADD.alias, {"text": "milk"})), says("Noted.")])
    bots = {"": TOKEN, "work": "654321:another-token-that-is-no-secret"}
    async with telegram_server() as town:
        ana = town.user(111, "Ana")
        town.private(ana, bot=town.bot(TOKEN))
        second = town.bot(bots["work"], username="work_test_bot")
        chat = town.private(ana, bot=second)
        async with living(tmp_path, town, model, tools, bots=bots):
            await chat.say("note milk")
            await chat.wait_for(lambda message: message.labels)
            await (await chat.press("Allow once")).answered()
            await chat.wait_for_reply("Noted.")

            assert [name for name, _ in tools.ran] == [ADD.name]
            assert town.private(ana, bot=town.bot(TOKEN)).replies == []
