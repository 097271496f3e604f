import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryKind, Origin, Part
from gateway.domain.errors import FileTooLarge, FileUnavailable
from gateway.domain.files import FileState
from gateway.domain.ids import MessageId
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.model import ModelReply, ModelRequest, UserSaid
from gateway.domain.operations.deliveries import Enqueue
from gateway.runtime.config import BusyMode, GatewayConfig
from gateway.runtime.file_view import MAX_TEXT_BYTES, FileViews
from gateway.runtime.runtime import RuntimeConfig
from gateway.telemetry.faults import FaultPoint, armed, parse
from tests.fakes.clock import HastyClock
from tests.fakes.house import STRANGER, House, folder_in, running
from tests.fakes.loopback import Loopback, chat
from tests.fakes.model import ScriptedModel, calls_tool, says
from tests.fakes.pictures import png
from tests.fakes.tools import FakeTools, tool
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FILES = "SELECT state, name, size, error FROM attachment ORDER BY id"


def file(ref: str, *, name: str = "a.bin", size: int | None = None) -> Attachment:
    return Attachment(
        kind=AttachmentKind.FILE,
        media_type="application/octet-stream",
        name=name,
        size=size,
        ref=ref,
    )


def photo(ref: str, *, name: str = "p.png") -> Attachment:
    return Attachment(kind=AttachmentKind.IMAGE, media_type="image/png", name=name, ref=ref)


def in_media(home: Path) -> list[Path]:
    return list(home.glob("media/*"))


def said(model: ScriptedModel, request: int = 0) -> UserSaid:
    """What the person said last in a request."""
    found = [item for item in model.requests[request].history if isinstance(item, UserSaid)]
    return found[-1]


async def states(house: House, *wanted: str) -> list[tuple[object, ...]]:
    found = house.rows(FILES)
    assert tuple(row[0] for row in found) == wanted
    return found


async def test_a_picture_is_shown_to_the_model_as_one(tmp_path: Path) -> None:
    model, chats = ScriptedModel([says("a square")]), Loopback(files={"f": [png()]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("what is this?", files=(photo("f"),))
        assert await house.replies(1) == ["a square"]
        await states(house, "stored")

    shown = said(model)
    assert [(item.media_type, item.data) for item in shown.pictures] == [("image/png", png())]
    (kept,) = in_media(tmp_path)
    assert shown.text == (
        f"what is this?\n[attached image: p.png (image/png, {len(png())} bytes, kept at {kept})]"
    )


async def test_a_picture_is_still_seen_when_it_is_asked_about_later(tmp_path: Path) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [png()]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("look", files=(photo("f"),))
        await house.replies(1)
        await house.say("which colour was it?")
        await house.replies(2)

    before = model.requests[1].history[0]
    assert isinstance(before, UserSaid)
    assert len(before.pictures) == 1


async def test_a_text_file_is_read_to_the_model_whatever_it_is_called(tmp_path: Path) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [b"milk\n```\neggs"]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("", files=(file("f", name="list.dat"),))
        await house.replies(1)

    assert "[attached file: list.dat (" in said(model).text
    assert said(model).text.endswith("\n````\nmilk\n```\neggs\n````")


async def test_a_long_text_file_is_cut_and_said_to_be(tmp_path: Path) -> None:
    whole = "é" * MAX_TEXT_BYTES
    model, chats = ScriptedModel(), Loopback(files={"f": [whole.encode()]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("", files=(file("f", name="long.txt"),))
        await house.replies(1)

    assert "its first 100 kB:)]" in said(model).text
    assert said(model).text.count("é") == MAX_TEXT_BYTES // 2


async def test_what_the_model_cannot_see_is_named_with_its_place(tmp_path: Path) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [b"PK\x03\x04\x00\x00"]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("", files=(file("f", name="data.zip"),))
        await house.replies(1)

    (kept,) = in_media(tmp_path)
    assert said(model).text == (
        f"[attached file: data.zip (application/octet-stream, 6 bytes, kept at {kept})]"
    )


@requirement("threat.s21")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (png(60_000, 60_000), "60000 x 60000 pixels are too many to be shown"),
        (png(7_000, 7_000), "7000 x 7000 pixels are too many to be shown"),
        (png(2, 2, padding=4_000_000), "it is too large to be shown"),
        (b"\x89PNG\r\n\x1a\nnonsense", "its size cannot be read"),
    ],
)
async def test_a_picture_that_could_unpack_to_too_much_is_named_instead(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [data]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("look", files=(photo("f"),))
        await house.replies(1)

    assert said(model).pictures == ()
    assert problem in said(model).text


async def test_the_turn_waits_for_its_files_and_nobody_else_does(tmp_path: Path) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [b"here"]})
    chats.gate.clear()
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("with a file", files=(file("f"),))
        await house.say("without", place=chat(2))
        assert await house.replies(1, place=chat(2)) == ["echo: without"]
        assert chats.texts(chat()) == []
        chats.gate.set()
        await house.replies(1, place=chat())

    assert "here" in said(model, 1).text


async def test_files_of_one_message_are_one_turn(tmp_path: Path) -> None:
    model = ScriptedModel([says("three")])
    chats = Loopback(files={name: [png()] for name in "abc"})
    async with running(tmp_path, model, adapter=chats) as house:
        for text, name in (("these", "a"), ("", "b"), ("", "c")):
            await house.say(text, files=(photo(name),), album="album")
        assert await house.replies(1) == ["three"]

    assert len(model.requests) == 1
    history = model.requests[0].history
    assert [len(item.pictures) for item in history if isinstance(item, UserSaid)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("held", "size", "problem", "state"),
    [
        (
            FileTooLarge(20_000_000, 25_000_000),
            3,
            "it has 25 MB, and 20 MB is the limit",
            "refused",
        ),
        ([b"x"], 25_000_000, "it has 25 MB, and 20 MB is the limit", "refused"),
        (None, 3, "loop has it no longer", "failed"),
        (
            FileUnavailable("loop", "no answer"),
            3,
            "loop did not hand it over (no answer)",
            "failed",
        ),
        (RuntimeError("secret"), 3, "something went wrong on our side", "failed"),
    ],
)
async def test_a_file_that_does_not_come_is_said_to_person_and_model_and_the_turn_goes_on(
    tmp_path: Path, held: list[bytes] | Exception | None, size: int, problem: str, state: str
) -> None:
    model = ScriptedModel([says("without it, then")])
    chats = Loopback(files={} if held is None else {"f": held})
    async with running(tmp_path, model, adapter=chats, clock=HastyClock()) as house:
        await house.say("read this", files=(file("f", name="big.pdf", size=size),))
        told = await house.replies(2)
        await states(house, state)

    assert set(told) == {f"I could not take big.pdf: {problem}.", "without it, then"}
    assert f"not available: {problem}" in said(model).text
    assert in_media(tmp_path) == []


@requirement("threat.s21")
async def test_a_file_that_never_ends_is_cut_at_the_limit(tmp_path: Path) -> None:
    class Endless(list[bytes]):
        given = 0

        def __iter__(self) -> "Endless":
            return self

        def __next__(self) -> bytes:
            self.given += 1
            return b"x" * 1_000_000

    endless = Endless()
    model, chats = ScriptedModel(), Loopback(files={"f": endless})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("", files=(file("f", name="endless"),))
        told = await house.replies(2)

    assert "I could not take endless: 20 MB is the limit." in told
    assert endless.given <= 21


async def test_a_fetch_that_fails_at_first_is_tried_again(tmp_path: Path) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": FileUnavailable("loop", "busy")})
    clock = HastyClock()
    async with running(tmp_path, model, adapter=chats, clock=clock) as house:
        chats.gate.clear()
        await house.say("", files=(file("f"),))
        await chats.until(lambda: len(chats.fetched) == 1)
        chats.files["f"] = FileUnavailable("loop", "busy", retry_after=7)
        chats.gate.set()
        await chats.until(lambda: len(chats.fetched) == 2)
        chats.files["f"] = [b"now"]
        await house.replies(1)
        await states(house, "stored")


@pytest.mark.parametrize("point", [FaultPoint.FILE_FETCHING, FaultPoint.FILE_KEPT])
async def test_a_fetch_cut_off_by_a_crash_is_made_again(tmp_path: Path, point: FaultPoint) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [b"whole"]})
    with armed(parse(f"{point}:1:hang")):
        async with running(tmp_path, model, adapter=chats, crash=True) as house:
            await house.say("read", files=(file("f", name="n.txt"),))
            await chats.until(lambda: bool(chats.fetched))
            if point is FaultPoint.FILE_KEPT:
                await eventually_async(lambda: bool(in_media(tmp_path)))

    after = Loopback(files={"f": [b"whole"]})
    async with running(tmp_path, model, adapter=after, first=9) as house:
        await house.replies(1)
        await states(house, "stored")

    assert "whole" in said(model).text
    assert len(in_media(tmp_path)) == 1


@requirement("threat.s20")
async def test_names_and_case_twins_neither_escape_nor_collide(tmp_path: Path) -> None:
    names = (
        "../../evil.sh",
        "CON",
        "a\x00b",
        "Twin.txt",
        "twin.TXT",
        "gpj\u202efdp.exe",
        "x" * 300,
    )
    model = ScriptedModel()
    chats = Loopback(files={str(n): [f"file {n}".encode()] for n in range(len(names))})
    files = tuple(file(str(n), name=name) for n, name in enumerate(names))
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("", files=files)
        await house.replies(1)
        found = await states(house, *["stored"] * len(names))

    shown = [row[1] for row in found]
    assert shown == [
        "evil.sh",
        "_CON",
        "ab",
        "Twin.txt",
        "twin.TXT",
        "gpjfdp.exe",
        "x" * 120,
    ]
    kept = sorted(path.read_text() for path in in_media(tmp_path))
    assert kept == [f"file {n}" for n in range(len(names))]
    assert not (tmp_path.parent / "evil.sh").exists()


async def test_a_file_that_joins_a_running_turn_is_waited_for(tmp_path: Path) -> None:
    chats, tools = Loopback(files={"f": [b"late text"]}), FakeTools()
    tools.add(tool("add"))
    houses: list[House] = []

    async def meanwhile(request: ModelRequest) -> ModelReply:
        await houses[0].say("and this", files=(file("f"),))
        return calls_tool("mcp__demo__add")

    model = ScriptedModel([meanwhile, says("done")])
    config = RuntimeConfig(gateway=GatewayConfig(busy_mode=BusyMode.STEER))
    async with running(tmp_path, model, adapter=chats, tools=tools, config=config) as house:
        houses.append(house)
        await house.say("first")
        await house.replies(1)

    assert "late text" in said(model, 1).text


async def test_guided_mode_is_told_of_a_file_by_name_alone(tmp_path: Path) -> None:
    model = ScriptedModel(asks_person=True)
    chats = Loopback(files={"f": [b"many words"]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("hi", files=(file("f", name="w.txt"),))
        await house.replies(1)

    assert "w.txt" in said(model).text
    assert "many words" not in said(model).text


async def test_a_file_that_takes_too_long_is_said_to_be_on_its_way(tmp_path: Path) -> None:
    class Never:
        async def until_settled(self, messages: Sequence[MessageId]) -> None:
            await asyncio.Event().wait()

    model, chats = ScriptedModel(), Loopback(files={"f": [b"late"]})
    chats.gate.clear()
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("", files=(file("f", name="slow.txt"),))
        await chats.until(lambda: bool(chats.fetched))
        views = FileViews(
            files=house.readers.files, media=folder_in(tmp_path), awaited=Never(), patience=0.01
        )
        view = views.open(whole=True)
        (item,) = await house.readers.files.pending()
        await view.wait_for([item.message])
        chats.gate.set()
        await house.replies(1)

    (shown,) = view.looked.of[item.message]
    assert "slow.txt" in shown.text
    assert "not available yet" in shown.text


async def test_a_strangers_file_is_never_asked_for(tmp_path: Path) -> None:
    model, chats = ScriptedModel(), Loopback(files={"f": [b"x"]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.say("look", files=(file("f"),), sender=STRANGER)
        await house.say("hello")
        await house.replies(1)
        assert house.rows(FILES) == []

    assert chats.fetched == []


@requirement("threat.s21")
async def test_a_chat_whose_files_take_their_share_gets_no_more_room(tmp_path: Path) -> None:
    full = replace(
        file("", name="big.iso", size=1_000_000_000), key="out-big", state=FileState.STORED
    )
    part = Part(kind=DeliveryKind.FILE, body="", files=(full,))
    model, chats = ScriptedModel(), Loopback(files={"f": [b"x"]})
    async with running(tmp_path, model, adapter=chats) as house:
        await house.store.enqueue(
            Enqueue(place=chat(), group_key="g", parts=(part,), origin=Origin.SEND, note="big")
        )
        await house.say("one more", files=(file("f", name="more.txt", size=1),))
        told = await house.replies(2)
        await house.say("elsewhere", files=(file("f", name="more.txt", size=1),), place=chat(2))
        await house.replies(1, place=chat(2))
        await states(house, "stored", "failed", "stored")

    full_up = "it could not be kept here (the files of this chat take 1 GB of 1 GB)"
    assert f"I could not take more.txt: {full_up}." in told
