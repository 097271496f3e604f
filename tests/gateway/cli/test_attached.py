"""A chat beside a running gateway: the real terminal adapter, the real socket, lines from a list."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from adapters.terminal.buttons import OpenCard
from gateway.app import OutputLost
from gateway.cli.attached import chat_attached
from gateway.control.client import SocketClient
from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.errors import GatewayNotRunning, GatewayRefused, ModelRejected
from gateway.domain.form import FieldKind, Form, FormField, Option
from gateway.ports import Approver, FormRequest
from gateway.providers.guided import Guided
from tests.fakes.model import ScriptedModel, SlowModel, calls_tool, says
from tests.fakes.office import Office, open_office
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
TOPPINGS = tuple(Option(value=f"t{n}", label=f"Topping {n}") for n in range(1, 13))
FORM = Form(
    message="Order",
    fields=(
        FormField(name="name", kind=FieldKind.TEXT, label="Name", minimum=2),
        FormField(name="hot", kind=FieldKind.BOOLEAN, label="Hot", default=True),
        FormField(name="toppings", kind=FieldKind.MULTI, label="Toppings", options=TOPPINGS),
        FormField(name="note", kind=FieldKind.TEXT, label="Note", required=False),
    ),
)


@dataclass(slots=True, kw_only=True)
class Lines:
    """Implements `Screen`: each line is read when the one before is answered."""

    lines: list[str]
    shown: list[str] = field(default_factory=list[str])
    sequential: bool = True
    fails: bool = False

    async def read(self, card: Callable[[], OpenCard | None]) -> str | None:
        del card
        return self.lines.pop(0) if self.lines else None

    def write(self, text: str) -> None:
        if self.fails:
            raise BrokenPipeError(32, "Broken pipe")
        self.shown.append(text)

    @property
    def text(self) -> str:
        return "\n".join(self.shown)


async def chat(
    office: Office,
    *lines: str,
    interactive: bool = True,
    fails: bool = False,
    toolsets: Sequence[str] = (),
) -> tuple[bool, Lines]:
    screen = Lines(lines=list(lines), fails=fails)
    async with asyncio.timeout(20):
        fine = await chat_attached(
            office.client, lambda: screen, interactive=interactive, toolsets=toolsets
        )
    return fine, screen


def ordering(answers: list[Any]) -> FakeTools:
    async def order(arguments: CanonicalJson, approver: Approver) -> str:
        answer = await approver.elicit(
            FormRequest(server="demo", server_sha="", tool="order", form=FORM)
        )
        answers.append((answer.action.value, dict(answer.content or {})))
        return canonical(dict(answer.content or {}))

    tools = FakeTools()
    tools.add(tool("order"), order)
    tools.add(tool("add"), gated=True)
    return tools


@requirement("cli.chat.attaches")
async def test_lines_are_answered_in_order_and_the_end_of_input_ends_it(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        fine, screen = await chat(office, "one", "", "/whoami", "two")

    assert fine
    assert screen.shown[0] == "echo: one"
    assert "role **admin**" in screen.shown[1]
    assert screen.shown[2] == "echo: two"


@requirement("cli.chat.attaches")
async def test_a_card_is_answered_by_number_and_closes_with_who_decided(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD, text="milk")])

    async with open_office(tmp_path, model, tools=ordering([])) as office:
        _, screen = await chat(office, "add", "7", "1", "thanks")

    assert "1) Allow once\n2) Allow for this session\n3) Always allow\n4) Deny" in screen.shown[0]
    assert '"text": "milk"' in screen.shown[0]
    assert "Asked by root" in screen.shown[0]
    assert screen.shown[1] == "Answer with a number from 1 to 4, or a label."
    assert "demo · add: Allowed once by root" in screen.shown[2]
    assert screen.shown[-1] == "echo: thanks"
    assert office.tools.ran == [("add", '{"text":"milk"}')]


@requirement("cli.chat.attaches", "elicitation.form.types")
async def test_a_form_is_answered_step_by_step_as_in_a_chat_of_its_own(tmp_path: Path) -> None:
    answers: list[Any] = []
    model = ScriptedModel([calls_tool("mcp__demo__order")])
    steps: Sequence[tuple[str, str]] = (
        ("order", "Name (1 of 4)"),
        ("x", "at least 2 characters"),
        ("Anna", "Hot (2 of 4)"),
        ("Use default: Yes", "Toppings (3 of 4)"),
        ("2", "[x] Topping 2"),
        ("More (page 1 of 2)", "Topping 12"),
        ("Topping 9", "Note (4 of 4"),
        ("skip", "toppings: Topping 2, Topping 9"),
        ("Edit", "Which field should change?"),
        ("Name", "Now: Anna"),
        ("Ben", "Name: Ben"),
        ("Submit", "echo: "),
    )

    async with open_office(tmp_path, model, tools=ordering(answers)) as office:
        _, screen = await chat(office, *(line for line, _ in steps))

    for _, expected in steps:
        found = [text for text in screen.shown if expected.casefold() in text.casefold()]
        assert found, (expected, screen.text)
    assert answers == [("accept", {"name": "Ben", "hot": True, "toppings": ["t2", "t9"]})]


@requirement("elicitation.url_mode")
async def test_a_link_is_given_in_the_chat_that_agreed_to_it(tmp_path: Path) -> None:
    answers: list[str] = []

    async def sign(arguments: CanonicalJson, approver: Approver) -> str:
        request = FormRequest(
            server="demo",
            server_sha="",
            tool="sign",
            form=Form(message="Sign in."),
            url="https://example.com/in",
        )
        answers.append((await approver.elicit(request)).action.value)
        return "signed"

    tools = FakeTools()
    tools.add(tool("sign"), sign)
    model = ScriptedModel([calls_tool("mcp__demo__sign")])
    async with open_office(tmp_path, model, tools=tools) as office:
        _, screen = await chat(office, "sign", "Open link")

    assert answers == ["accept"]
    assert "1) Open link\n2) Decline\n3) Cancel" in screen.shown[0]
    assert '"host": "example.com"' in screen.shown[0]
    assert "Agreed by root" in screen.text
    assert "The link of demo: <https://example.com/in>" in screen.text


async def test_the_way_to_a_tool_is_chosen_by_number(tmp_path: Path) -> None:
    async with open_office(tmp_path, Guided(), tools=ordering([])) as office:
        _, screen = await chat(office, "add", "1", "4")

    assert "1) demo · add" in screen.shown[0]
    assert "Chosen by root" in screen.text
    assert "Denied by root" in screen.text
    assert office.tools.ran == []


async def test_what_still_waits_at_the_end_of_input_is_stopped(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD)])

    async with open_office(tmp_path, model, tools=ordering([])) as office:
        _, screen = await chat(office, "add")
        pending = await office.readers.questions.pending()

    assert "No longer waiting: stopped" in screen.text
    assert pending == ()


async def test_an_open_card_of_an_earlier_chat_comes_first(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD)])

    async with open_office(tmp_path, model, tools=ordering([])) as office:
        async with office.client.give(
            "terminal:local", "add", event_id="e", interactive=True
        ) as lines:
            while (await anext(lines))["type"] != "asking":
                continue
        _, screen = await chat(office, "deny")

    assert "1) Allow once" in screen.shown[0]
    assert "Denied by root" in screen.shown[1]


@requirement("design.chat.one_shot")
async def test_one_question_shows_the_reply_and_nothing_else(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD)])

    async with open_office(tmp_path, model, tools=ordering([])) as office:
        fine, screen = await chat(office, "add", interactive=False)
        command = await chat(office, "/whoami", interactive=False)

    assert fine
    assert len(screen.shown) == 1
    assert "nobody can be asked here" in screen.shown[0]
    assert "role **admin**" in command[1].shown[0]


@requirement("design.chat.one_shot")
@pytest.mark.parametrize("lines", [("one",), ("one", "two")])
async def test_a_chat_whose_last_turn_failed_says_so(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    model = ScriptedModel([ModelRejected("m", "no")])

    async with open_office(tmp_path, model) as office:
        fine, _ = await chat(office, *lines)

    assert fine is (len(lines) == 2)


async def test_a_gateway_that_ends_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    model = SlowModel()

    async def leave(office: Office) -> None:
        await model.asked.acquire()
        office.desk.ending.set()
        model.gate.release()

    async with open_office(tmp_path, model) as office, asyncio.TaskGroup() as tasks:
        tasks.create_task(leave(office))
        with pytest.raises(ExceptionGroup) as ended:
            await chat(office, "hello", "never read")

    assert isinstance(ended.value.exceptions[0], GatewayRefused)


async def test_without_a_gateway_nothing_is_read(tmp_path: Path) -> None:
    screen = Lines(lines=["hello"])

    with pytest.raises(GatewayNotRunning):
        await chat_attached(
            SocketClient(tmp_path / "gateway.sock"), lambda: screen, interactive=True
        )

    assert screen.lines == ["hello"]


async def test_an_output_that_nobody_reads_ends_the_chat(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        with pytest.raises(OutputLost):
            await chat(office, "hello", "again", fails=True)


async def test_a_standing_rule_can_be_made_in_an_attached_chat(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD)])

    async with open_office(tmp_path, model, tools=ordering([])) as office:
        _, screen = await chat(office, "add", "3", "after")
        rules = await office.readers.rules.live()

    assert [rule.scope for rule in rules] == ["always"]
    assert "Always allowed by root" in screen.text
    assert screen.shown[-1] == "echo: after"


@requirement("cli.chat.toolsets.narrowed", "cli.chat.toolsets.never_commands")
async def test_a_chat_with_chosen_toolsets_has_no_other_tools_and_every_command(
    tmp_path: Path,
) -> None:
    tools = FakeTools(specs=[tool("add"), tool("pay", server="bank")])
    model = ScriptedModel([calls_tool("mcp__bank__pay"), says("no"), calls_tool(ADD), says("yes")])

    async with open_office(tmp_path, model, tools=tools) as office:
        _, screen = await chat(office, "pay", "add", "/tools", "/help", toolsets=["mcp-demo"])
        _, other = await chat(office, "/tools")

    assert office.tools.ran == [("add", "{}")]
    assert "bank" not in model.requests[0].system
    assert {spec.name for spec in model.requests[0].functions} >= {"tool_search", "tool_call"}
    assert screen.shown[2] == "- `mcp__demo__add`: Add"
    assert "/call" in screen.shown[3]
    assert "mcp__bank__pay" in other.text


@requirement("cli.chat.toolsets.narrowed")
async def test_what_was_left_out_cannot_be_called_by_name_either(tmp_path: Path) -> None:
    tools = FakeTools(specs=[tool("add"), tool("pay", server="bank")])

    async with open_office(tmp_path, tools=tools) as office:
        _, screen = await chat(office, "/call mcp__bank__pay {}", toolsets=["mcp-demo"])

    assert "no tool mcp__bank__pay" in screen.text
    assert not office.tools.ran
