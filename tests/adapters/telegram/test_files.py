import base64
import gzip
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from adapters.telegram.fetching import Fetcher
from adapters.telegram.markup import TelegramRenderer
from gateway.config.home import Home
from gateway.config.media import MediaFolder
from gateway.domain.delivery import Delivery, DeliveryKind, Mark, Part, Receipt
from gateway.domain.errors import (
    DeliveryRejected,
    DeliveryUnsure,
    FileGone,
    FileTooLarge,
    FileUnavailable,
)
from gateway.domain.files import FileState
from gateway.domain.message import Attachment, AttachmentKind, InboundMessage
from tests.adapters.telegram.rig import TOKEN, Rig, dm, rig, topic, unhurried
from tests.fakes.telegram import ChatDriver, Fault, Limits, Town, Trouble, flood, refuse
from tests.fakes.telegram.state import Message
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

KINDS = {
    "photo": AttachmentKind.IMAGE,
    "document": AttachmentKind.FILE,
    "voice": AttachmentKind.VOICE,
    "audio": AttachmentKind.AUDIO,
    "video": AttachmentKind.VIDEO,
}


@pytest.fixture
def media(tmp_path: Path) -> MediaFolder:
    home = Home(tmp_path / "home")
    home.create()
    return MediaFolder(home)


async def kept(media: MediaFolder, name: str, kind: AttachmentKind, data: bytes) -> Attachment:
    async def pieces() -> AsyncIterator[bytes]:
        yield data

    key = f"out-{base64.b16encode(name.encode()).decode().lower()}"
    found = await media.keep(pieces(), key=key, limit=60_000_000)
    return Attachment(
        kind=kind,
        media_type="application/octet-stream",
        name=name,
        size=found.size,
        key=found.key,
        state=FileState.STORED,
    )


def part(*files: Attachment, text: str = "") -> Part:
    if not text:
        return Part(kind=DeliveryKind.FILE, body="", files=files)
    (said,) = TelegramRenderer().text(text)
    return replace(said, kind=DeliveryKind.FILE, files=files)


def content(town: Town, message: Message) -> tuple[str, str, bytes]:
    """The field that shows the file, its name at the service, and what is in it."""
    (kind, shown), *_ = message.media.items()
    described = shown[-1] if kind == "photo" else shown
    file = town.service.world.files[described["file_id"]]
    return kind, file.name, file.data


async def received(run: Rig, count: int = 1) -> list[InboundMessage]:
    await run.inbox.until(lambda: len(run.inbox.events) >= count)
    return [event for event in run.inbox.events if isinstance(event, InboundMessage)]


async def fetched(run: Rig, file: Attachment) -> bytes:
    async with run.adapter.fetch(file) as pieces:
        return b"".join([piece async for piece in pieces])


# --- what arrives -------------------------------------------------------------------


@requirement("platform.telegram.attachments")
@pytest.mark.parametrize("kind", list(KINDS))
async def test_each_kind_of_file_is_handed_over(kind: str) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await chat.send_file(kind, b"contents", name="a.bin", caption="look")
            (event,) = await received(run)
            (file,) = event.attachments

            assert (event.text, file.kind) == ("look", KINDS[kind])
            assert await fetched(run, file) == b"contents"


async def test_an_album_says_that_its_files_belong_together_also_where_one_has_to_call_us() -> None:
    async with unhurried() as town:
        ana = town.user(111, "Ana")
        chat = town.supergroup("Team", ana, bot=town.bot(TOKEN), bot_status="administrator")
        async with rig(town) as run:
            us = town.bot(TOKEN).state.username
            for caption in (f"@{us} these", "", ""):
                await chat.send_file("photo", b"x", caption=caption, album="77")
            await chat.send_file("photo", b"x", album="78")
            events = await received(run, 4)

    assert [event.album for event in events] == ["77", "77", "77", "78"]
    assert [event.mentions_us for event in events] == [True, True, True, False]


async def test_a_file_telegram_does_not_hand_over_says_its_limit() -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await chat.send_file("document", b"x", size=25_000_000)
            (event,) = await received(run)
            (told,) = event.attachments
            for file in (told, replace(told, size=None)):
                with pytest.raises(FileTooLarge, match="20 MB is the limit"):
                    await fetched(run, file)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refuse("getFile", 400, "Bad Request: invalid file_id"), FileGone),
        (Fault(trouble=Trouble.CUT_BEFORE, method="getFile"), FileUnavailable),
        (flood("getFile", 7), FileUnavailable),
        (refuse("getFile", 401, "Unauthorized"), FileUnavailable),
    ],
)
async def test_what_goes_wrong_with_a_file_says_whether_to_ask_again(
    fault: Fault, error: type[Exception]
) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town) as run:
            await chat.send_file("document", b"x")
            (event,) = await received(run)
            town.fail(fault)
            with pytest.raises(error) as caught:
                await fetched(run, event.attachments[0])

    assert TOKEN not in str(caught.value)
    if fault.retry_after:
        assert isinstance(caught.value, FileUnavailable)
        assert caught.value.retry_after == 7


class Hostile:
    """A service that answers `getFile` well and then sends what it likes."""

    def __init__(self, *, packed: bool = False, path: str = "files/x") -> None:
        self.given = 0
        self.packed = packed
        self.path = path

    async def method(self, request: web.Request) -> web.Response:
        found = {"file_id": "f", "file_unique_id": "u", "file_path": self.path}
        return web.json_response({"ok": True, "result": found})

    async def file(self, request: web.Request) -> web.StreamResponse:
        if self.packed:
            bomb = gzip.compress(b"\x00" * 50_000_000)
            return web.Response(body=bomb, headers={"content-encoding": "gzip"})
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 65_536)
            self.given += 65_536


@pytest.fixture
async def hostile() -> AsyncGenerator[tuple[Hostile, Fetcher]]:
    from telegram import Bot

    service = Hostile()
    app = web.Application()
    app.router.add_route("*", "/bot{token}/getFile", service.method)
    app.router.add_get("/file/bot{token}/{path:.*}", service.file)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    bot = Bot(TOKEN, base_url=f"{root}/bot", base_file_url=f"{root}/file/bot")
    fetcher = Fetcher(bot)
    yield service, fetcher
    await fetcher.aclose()
    await bot.request.shutdown()
    await runner.cleanup()


FILE = Attachment(kind=AttachmentKind.FILE, media_type="x/y", name="f", ref="f")


@requirement("threat.s21")
async def test_an_endless_body_is_read_no_further_than_the_limit(
    hostile: tuple[Hostile, Fetcher], media: MediaFolder
) -> None:
    service, fetcher = hostile

    with pytest.raises(FileTooLarge):
        async with fetcher.fetch(FILE) as pieces:
            await media.keep(pieces, key="in-1", limit=1_000_000)

    # What the sockets hold besides is bounded by them.
    assert service.given < 20_000_000


@requirement("threat.s21")
async def test_a_packed_body_is_not_unpacked(hostile: tuple[Hostile, Fetcher]) -> None:
    service, fetcher = hostile
    service.packed = True

    with pytest.raises(FileUnavailable, match="it came packed"):
        async with fetcher.fetch(FILE):
            pass


@requirement("threat.s20")
async def test_a_path_of_this_machine_is_not_opened(
    hostile: tuple[Hostile, Fetcher], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    service, fetcher = hostile
    service.path = str(secret)

    with pytest.raises(FileGone):
        async with fetcher.fetch(FILE):
            pass


# --- what is sent -------------------------------------------------------------------


@requirement("platform.telegram.attachments")
@pytest.mark.parametrize("kind", list(KINDS))
async def test_each_kind_of_file_is_sent_as_what_it_is(media: MediaFolder, kind: str) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town, media=media) as run:
            file = await kept(media, "a.bin", KINDS[kind], b"contents")
            receipt = await run.adapter.send(run.delivery(dm(), part(file, text="**here**")))

        (shown,) = chat.replies
        assert content(town, shown) == (kind, "a.bin", b"contents")
        assert (shown.text, [item["type"] for item in shown.entities]) == ("here", ["bold"])
        assert receipt.native_id == str(shown.id)


async def test_pictures_of_one_message_are_an_album(media: MediaFolder) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town, media=media) as run:
            files = [await kept(media, name, AttachmentKind.IMAGE, name.encode()) for name in "abc"]
            receipt = await run.adapter.send(run.delivery(dm(), part(*files, text="three")))

        assert [content(town, item)[2] for item in chat.replies] == [b"a", b"b", b"c"]
        assert chat.texts == ["three", "", ""]
        assert receipt.native_id == ",".join(str(item.id) for item in chat.replies)


async def test_a_picture_telegram_cannot_show_goes_as_a_document(media: MediaFolder) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS"))
        async with rig(town, media=media) as run:
            file = await kept(media, "long.png", AttachmentKind.IMAGE, b"x")
            await run.adapter.send(run.delivery(dm(), part(file, text="odd")))

        (shown,) = chat.replies
        assert content(town, shown) == ("document", "long.png", b"x")
        assert shown.text == "odd"


async def test_a_caption_that_cannot_be_read_is_sent_plain(media: MediaFolder) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        town.fail(refuse("sendDocument", 400, "Bad Request: can't parse entities"))
        async with rig(town, media=media) as run:
            file = await kept(media, "a", AttachmentKind.FILE, b"x")
            receipt = await run.adapter.send(run.delivery(dm(), part(file, text="**b**")))

        (shown,) = chat.replies
        assert (shown.text, shown.entities) == ("b", [])
        assert receipt.marks == {Mark.PLAIN}


async def test_files_go_to_their_topic(media: MediaFolder) -> None:
    async with unhurried() as town:
        ana = town.user(111, "Ana")
        chat = town.supergroup("Team", ana, bot=town.bot(TOKEN), forum=True)
        inside = await chat.open_topic("Plans")
        async with rig(town, media=media) as run:
            file = await kept(media, "a", AttachmentKind.FILE, b"x")
            await run.adapter.send(run.delivery(topic(chat.id, inside.topic or 0), part(file)))

        assert len(inside.replies) == 1


async def test_a_file_that_is_kept_no_more_is_given_up(media: MediaFolder) -> None:
    async with unhurried() as town:
        town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town, media=media) as run:
            file = await kept(media, "a.txt", AttachmentKind.FILE, b"x")
            await media.remove([file.key])
            with pytest.raises(DeliveryRejected, match=r"a\.txt is not kept any more"):
                await run.adapter.send(run.delivery(dm(), part(file)))


async def test_telegrams_limits_are_said_before_anything_is_sent() -> None:
    limits = TelegramRenderer().capabilities.files

    assert limits is not None
    telegram = Limits()
    assert (limits.file, limits.image) == (telegram.upload_bytes, telegram.photo_bytes)


# --- what may have arrived ----------------------------------------------------------


async def lost(run: Rig, files: Part, method: str, *, arrives: bool) -> Delivery:
    """Send files whose answer never comes."""
    trouble = Trouble.CUT_AFTER if arrives else Trouble.CUT_BEFORE
    run.town.fail(Fault(trouble=trouble, method=method))
    delivery = run.delivery(dm(), files)
    with pytest.raises(DeliveryUnsure):
        await run.adapter.send(delivery)
    return delivery


async def start(run: Rig, chat: ChatDriver) -> None:
    said = await chat.say("hello")
    await run.inbox.until(lambda: run.inbox.events)
    await run.town.until(lambda: not run.town.bot(TOKEN).pending)
    run.account_for(chat.id, said.id)


@pytest.mark.parametrize("text", ["", "**words**"])
@pytest.mark.parametrize("arrives", [True, False])
async def test_a_file_whose_answer_was_lost_is_found_or_said_not_to_be_there(
    media: MediaFolder, arrives: bool, text: str
) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town, media=media) as run:
            await start(run, chat)
            file = await kept(media, "a", AttachmentKind.IMAGE, b"x")
            delivery = await lost(run, part(file, text=text), "sendPhoto", arrives=arrives)

            receipt = await run.adapter.settle_unsure(delivery)

        if not arrives:
            assert receipt is None
            return
        (shown,) = chat.replies
        assert receipt == Receipt(native_id=str(shown.id))
        assert shown.edit_date is None


async def test_an_album_whose_answer_was_lost_is_found_whole(media: MediaFolder) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with rig(town, media=media) as run:
            await start(run, chat)
            files = [await kept(media, name, AttachmentKind.IMAGE, b"x") for name in "ab"]
            delivery = await lost(run, part(*files, text="two"), "sendMediaGroup", arrives=True)

            receipt = await run.adapter.settle_unsure(delivery)

        assert receipt is not None
        assert receipt.native_id == ",".join(str(item.id) for item in chat.replies)
        assert chat.texts == ["two", ""]
