import os
from pathlib import Path

import pytest

from gateway.domain.delivery import Delivery
from gateway.domain.errors import DeliveryDeferred, DeliveryRejected, GatewayRefused
from gateway.ports import SendRequest
from tests.fakes.house import rows
from tests.fakes.loopback import PLATFORM
from tests.fakes.office import Office, open_office
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is not where the files are."""
    made = tmp_path / "home"
    made.mkdir()
    return made


def written(folder: Path, name: str, data: bytes = b"hello") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def in_media(home: Path) -> list[Path]:
    return list(home.glob("media/*"))


def outbox(office: Office) -> list[object]:
    found = rows(office.path.parent / "state.db", "SELECT body FROM delivery WHERE origin = 'send'")
    return [row[0] for row in found]


async def known(office: Office) -> None:
    await office.say("hello")
    await office.chat.until(lambda: len(office.chat.texts()) == 1)


async def refused(office: Office, request: SendRequest) -> GatewayRefused:
    with pytest.raises(GatewayRefused) as caught:
        await office.client.send(request)
    return caught.value


def request(*paths: str, text: str = "here", key: str | None = None) -> SendRequest:
    return SendRequest(target="loop:1", text=text, attachments=paths, idempotency_key=key)


async def test_a_file_is_sent_as_it_was_when_it_was_named(tmp_path: Path, home: Path) -> None:
    path = written(tmp_path, "notes.txt")
    seen: list[bytes] = []

    def late(delivery: Delivery) -> None:
        if not delivery.files:
            return
        if delivery.attempt == 1:
            # What becomes of the original meanwhile is nothing to us.
            os.unlink(path)
            raise DeliveryDeferred(PLATFORM, 0.02)
        seen.append((home / "media" / delivery.files[0].key).read_bytes())

    async with open_office(home) as office:
        office.chat.on_send = late
        await known(office)
        sent = await office.client.send(request(path))

    delivery = office.chat.sent[-1]
    (file,) = delivery.files
    assert (delivery.body, file.name, file.media_type, file.size) == (
        "here",
        "notes.txt",
        "text/plain",
        5,
    )
    assert seen == [b"hello"]
    assert len(sent.message_ids) == 1


async def test_a_file_needs_no_words_and_is_noted_in_its_conversation(
    tmp_path: Path, home: Path
) -> None:
    paths = [written(tmp_path, "a.txt"), written(tmp_path, "b.bin")]
    async with open_office(home) as office:
        await known(office)
        sent = await office.client.send(request(*paths, text=""))
        view = await office.readers.conversations.find("agent:main:loop:dm:1")
        assert view is not None
        noted = (await office.readers.conversations.messages(view.session, limit=1))[0]
        files = (await office.readers.files.of([noted.id]))[noted.id]

    assert len(sent.message_ids) == 2
    assert noted.text == "(a.txt and b.bin)"
    assert [file.name for file in files] == ["a.txt", "b.bin"]


async def test_the_same_key_again_keeps_and_sends_nothing_more(tmp_path: Path, home: Path) -> None:
    path = written(tmp_path, "a.txt")
    async with open_office(home) as office:
        await known(office)
        first = await office.client.send(request(path, key="k"))
        again = await office.client.send(request(path, key="k"))

    assert first == again
    assert len(in_media(home)) == 1


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("big", "too_large", "big cannot be sent to loop: it has 6 kB, and 5 kB is the limit"),
        ("none", "invalid_arguments", "none is not there; nothing was sent"),
        ("dir", "invalid_arguments", "dir is no file; nothing was sent"),
        ("link", "invalid_arguments", "link is a link; name the file itself; nothing was sent"),
        (".env", "invalid_arguments", "env belongs to the gateway itself and is not sent"),
    ],
)
async def test_a_file_that_is_not_sent_is_explained_and_leaves_nothing(
    tmp_path: Path, home: Path, name: str, code: str, says: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    written(folder, "big", b"x" * 6_000)
    (folder / "dir").mkdir()
    (folder / "link").symlink_to(folder / "big")
    written(home, ".env", b"TOKEN=x")
    good = written(folder, "good.txt")
    where = home if name == ".env" else folder
    async with open_office(home) as office:
        await known(office)
        error = await refused(office, request(good, str(where / name)))

    assert error.code == code
    assert says in str(error)
    assert in_media(home) == []
    assert len(office.chat.sent) == 1


async def test_too_many_files_are_refused_before_any_is_read(tmp_path: Path, home: Path) -> None:
    async with open_office(home) as office:
        await known(office)
        error = await refused(office, request(*["/nowhere"] * 11))

    assert error.code == "too_large"
    assert "at most 10 files" in str(error)


async def test_a_refusal_of_the_platform_is_told(tmp_path: Path, home: Path) -> None:
    def no(delivery: Delivery) -> None:
        if delivery.files:
            raise DeliveryRejected(PLATFORM, "no files here")

    async with open_office(home) as office:
        office.chat.on_send = no
        await known(office)
        error = await refused(office, request(written(tmp_path, "a.txt")))

    assert error.code == "rejected"
    assert "no files here" in str(error)


@requirement("threat.s20")
async def test_the_name_a_file_goes_out_under_is_safe(tmp_path: Path, home: Path) -> None:
    path = written(tmp_path, "gpj\u202efdp.exe")
    async with open_office(home) as office:
        await known(office)
        await office.client.send(request(path))

    assert office.chat.sent[-1].files[0].name == "gpjfdp.exe"


async def test_an_attached_terminal_is_told_where_the_file_is(tmp_path: Path, home: Path) -> None:
    path = written(tmp_path, "a.txt")
    async with open_office(home) as office:
        await office.lines("hi")
        sent = await office.client.send(
            SendRequest(target="terminal:local", text="see", attachments=(path,))
        )
        (kept,) = in_media(home)
        (body,) = outbox(office)

    assert sent.platform == "terminal"
    assert body == f"see\n\n(file a.txt, 5 bytes: {kept})"
    assert kept.read_bytes() == b"hello"
