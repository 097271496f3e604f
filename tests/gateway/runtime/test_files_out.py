from pathlib import Path

import pytest

from gateway.domain.delivery import Delivery, DeliveryKind
from gateway.domain.errors import DeliveryDeferred
from gateway.domain.message import AttachmentKind
from gateway.domain.model import FunctionAnswer, ModelReply, ModelRequest
from gateway.domain.tools import ToolFile
from gateway.runtime.file_view import MAX_PICTURES
from gateway.telemetry.faults import FaultPoint, armed, parse
from tests.fakes.house import running
from tests.fakes.loopback import PLATFORM, Loopback
from tests.fakes.model import ScriptedModel, calls_tool, says
from tests.fakes.pictures import png
from tests.fakes.tools import FakeTools, tool
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

DRAW = "mcp__demo__draw"


def picture(number: int = 0, *, name: str = "chart.png") -> ToolFile:
    return ToolFile(
        kind=AttachmentKind.IMAGE, media_type="image/png", name=name, data=png(padding=number)
    )


def sound(size: int) -> ToolFile:
    return ToolFile(kind=AttachmentKind.AUDIO, media_type="audio/mpeg", data=b"x" * size)


def drawing(*files: ToolFile) -> FakeTools:
    tools = FakeTools()
    tools.add(tool("draw", read_only=True))
    tools.files[DRAW] = files
    return tools


def answers(request: ModelRequest) -> list[FunctionAnswer]:
    return [item for item in request.history if isinstance(item, FunctionAnswer)]


def in_media(home: Path) -> list[Path]:
    return list(home.glob("media/*"))


def with_files(chats: Loopback) -> list[Delivery]:
    return [item for item in chats.sent if item.kind is DeliveryKind.FILE]


@requirement("platform.telegram.attachments")
async def test_what_a_tool_draws_is_seen_by_the_model_and_goes_with_the_reply(
    tmp_path: Path,
) -> None:
    model, chats = ScriptedModel([calls_tool(DRAW), says("there you are")]), Loopback()
    async with running(tmp_path, model, adapter=chats, tools=drawing(picture())) as house:
        await house.say("draw")
        await chats.until(lambda: bool(with_files(chats)))

    (sent,) = with_files(chats)
    assert (sent.body, [file.name for file in sent.files]) == ("there you are", ["chart.png"])
    assert (tmp_path / "media" / sent.files[0].key).read_bytes() == png()
    (answer,) = answers(model.requests[1])
    assert [item.data for item in answer.pictures] == [png()]
    assert "chart.png: goes to the chat with your reply" in answer.text


async def test_a_reply_that_was_cut_off_by_a_crash_still_has_its_files(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(DRAW), says("there"), says("there")])
    with armed(parse(f"{FaultPoint.REPLY_READY}:1:hang")):
        async with running(tmp_path, model, tools=drawing(picture()), crash=True) as house:
            await house.say("draw")
            await eventually_async(lambda: len(model.requests) == 2)

    after = Loopback()
    async with running(tmp_path, model, adapter=after, tools=drawing(), first=9):
        await after.until(lambda: bool(with_files(after)))

    assert [file.name for file in with_files(after)[0].files] == ["chart.png"]
    assert len(answers(model.requests[-1])[0].pictures) == 1


async def test_a_delivery_with_files_waits_out_a_restart(tmp_path: Path) -> None:
    def later(delivery: Delivery) -> None:
        if delivery.files:
            raise DeliveryDeferred(PLATFORM, 0.05)

    model, chats = ScriptedModel([calls_tool(DRAW), says("x")]), Loopback(on_send=later)
    async with running(tmp_path, model, adapter=chats, tools=drawing(picture())) as house:
        await house.say("draw")
        await eventually_async(
            lambda: bool(house.rows("SELECT 1 FROM delivery WHERE attempts > 0"))
        )

    after = Loopback()
    async with running(tmp_path, model, adapter=after):
        await after.until(lambda: bool(with_files(after)))

    (file,) = with_files(after)[0].files
    assert (tmp_path / "media" / file.key).read_bytes() == png()


async def test_the_same_file_given_twice_is_sent_once_and_never_more_than_fit_a_message(
    tmp_path: Path,
) -> None:
    files = [picture(n % 12, name=f"{n}.png") for n in range(13)]
    model, chats = ScriptedModel([calls_tool(DRAW), says("x" * 30)]), Loopback()
    async with running(tmp_path, model, adapter=chats, tools=drawing(*files)) as house:
        await house.say("draw")
        await chats.until(lambda: sum(len(item.files) for item in with_files(chats)) == 10)

    names = [file.name for item in with_files(chats) for file in item.files]
    assert names == [f"{n}.png" for n in range(2, 12)]


async def test_a_file_too_large_for_the_platform_is_said_with_its_limit(tmp_path: Path) -> None:
    model, chats = ScriptedModel([calls_tool(DRAW), says("listen")]), Loopback()
    async with running(tmp_path, model, adapter=chats, tools=drawing(sound(6_000))) as house:
        await house.say("play")
        (reply,) = await house.replies(1)

    assert reply == "listen\n\n(audio.mp3 is not sent: it has 6 kB, and 5 kB is the limit)"
    assert with_files(chats) == []


async def test_a_turn_that_fails_sends_no_files(tmp_path: Path) -> None:
    model, chats = ScriptedModel([calls_tool(DRAW), says(""), says("")]), Loopback()
    async with running(tmp_path, model, adapter=chats, tools=drawing(picture())) as house:
        await house.say("draw")
        await house.replies(1)

    assert with_files(chats) == []


async def test_newer_pictures_of_tools_take_the_room_of_older_ones(tmp_path: Path) -> None:
    rounds = MAX_PICTURES + 2
    tools = drawing()
    counted: list[int] = []

    async def again(request: ModelRequest) -> ModelReply:
        counted.append(sum(len(item.pictures) for item in answers(request)))
        tools.files[DRAW] = [picture(len(counted))]
        return calls_tool(DRAW) if len(counted) < rounds else says("enough")

    model = ScriptedModel([again] * rounds)
    async with running(tmp_path, model, tools=tools) as house:
        await house.say("draw")
        await house.adapter.until(lambda: bool(with_files(house.adapter)))

    assert counted == [*range(MAX_PICTURES + 1), MAX_PICTURES]
    newest = answers(model.requests[-1])[-1]
    assert len(newest.pictures) == 1


async def test_a_text_too_long_for_the_model_is_kept_and_sent_to_nobody(tmp_path: Path) -> None:
    whole = ToolFile(
        kind=AttachmentKind.FILE,
        media_type="text/plain",
        name="result.txt",
        data=b"long",
        for_chat=False,
    )
    model, chats = ScriptedModel([calls_tool(DRAW), says("done")]), Loopback()
    async with running(tmp_path, model, adapter=chats, tools=drawing(whole)) as house:
        await house.say("draw")
        await house.replies(1)

    (kept,) = in_media(tmp_path)
    assert kept.read_bytes() == b"long"
    assert f"(the whole is kept at {kept})" in answers(model.requests[1])[0].text
    assert with_files(chats) == []
