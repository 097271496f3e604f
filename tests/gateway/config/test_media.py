import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.media import HALF_WRITTEN, MediaFolder
from gateway.domain.errors import FileTooLarge, FileUnreadable, FileUnwritable
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

LIMIT = 1_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


@pytest.fixture
def media(home: Home) -> MediaFolder:
    return MediaFolder(home)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


class Endless:
    """Yields for ever, and counts how much was asked of it."""

    def __init__(self) -> None:
        self.given = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.given += 100
            yield b"x" * 100


def names(media: Path) -> list[str]:
    return sorted(entry.name for entry in media.iterdir())


async def test_a_file_is_kept_whole_and_for_us_alone(home: Home, media: MediaFolder) -> None:
    kept = await media.keep(pieces(b"he", b"llo"), key="in-1.txt", limit=LIMIT)

    path = media.path("in-1.txt")
    assert (path.read_bytes(), kept.size) == (b"hello", 5)
    assert kept.sha256.startswith("2cf24dba")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await media.read("in-1.txt", limit=3) == b"hel"
    assert names(home.media) == ["in-1.txt"]


@requirement("threat.s21")
async def test_an_endless_file_is_cut_at_the_limit_and_leaves_nothing(
    home: Home, media: MediaFolder
) -> None:
    endless = Endless()

    with pytest.raises(FileTooLarge):
        await media.keep(endless, key="in-1", limit=LIMIT)

    assert endless.given <= LIMIT + 100
    assert names(home.media) == []


async def test_a_file_that_breaks_off_leaves_the_earlier_one_as_it_was(
    home: Home, media: MediaFolder
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    await media.keep(pieces(b"first"), key="in-1", limit=LIMIT)
    with pytest.raises(ConnectionError):
        await media.keep(broken(), key="in-1", limit=LIMIT)

    assert await media.read("in-1", limit=LIMIT) == b"first"
    assert names(home.media) == ["in-1"]


@requirement("threat.s20")
@pytest.mark.parametrize(
    "key", ["../x", "in-../../x", "/etc/passwd", "in-\x00", "in-1/2", "", ".", "in-1.tx/t", "IN-1"]
)
async def test_what_is_no_key_reaches_no_file(media: MediaFolder, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        media.path(key)
    with pytest.raises(ValueError, match="no key"):
        await media.keep(pieces(b"x"), key=key, limit=LIMIT)


async def test_a_folder_that_cannot_be_written_is_said_as_such(
    home: Home, media: MediaFolder
) -> None:
    home.media.rmdir()

    with pytest.raises(FileUnwritable):
        await media.keep(pieces(b"x"), key="in-1", limit=LIMIT)


async def test_a_chosen_file_is_copied(tmp_path: Path, media: MediaFolder) -> None:
    source = tmp_path / "notes.txt"
    source.write_text("hello")

    kept = await media.copy(str(source), key="out-1.txt", limit=LIMIT)
    source.unlink()

    assert (kept.size, await media.read("out-1.txt", limit=LIMIT)) == (5, b"hello")


async def test_a_chosen_file_over_the_limit_is_refused_with_both_numbers(
    tmp_path: Path, home: Home, media: MediaFolder
) -> None:
    source = tmp_path / "big"
    source.write_bytes(b"x" * (LIMIT + 1))

    with pytest.raises(FileTooLarge, match=r"it has 1 kB, and 1 kB is the limit"):
        await media.copy(str(source), key="out-1", limit=LIMIT)

    assert names(home.media) == []


def odd_files(folder: Path) -> Iterable[tuple[Path, str]]:
    """Paths that name no plain file, and what is said of them."""
    (folder / "real").write_text("x")
    (folder / "link").symlink_to(folder / "real")
    (folder / "dir").mkdir()
    os.mkfifo(folder / "pipe")
    yield folder / "link", "link is a link"
    yield folder / "dir", "dir is no file"
    yield folder / "pipe", "pipe is no file"
    yield folder / "none", "none is not there"
    yield Path("/dev/zero"), "zero is no file"
    yield Path("relative"), "relative must be given with its whole path"


async def test_only_regular_files_are_sent(tmp_path: Path, media: MediaFolder) -> None:
    for path, said in odd_files(tmp_path):
        with pytest.raises(FileUnreadable, match=said):
            await media.copy(str(path), key="out-1", limit=LIMIT)


@requirement("threat.s20")
async def test_the_gateways_own_files_are_not_sent_by_any_name(
    tmp_path: Path, home: Home, media: MediaFolder
) -> None:
    home.env_file.write_text("TOKEN=secret")
    (home.mcp_tokens / "linear.json").write_text("{}")
    os.link(home.env_file, tmp_path / "innocent.txt")
    (tmp_path / "alias").symlink_to(home.path)
    own = (
        home.env_file,
        home.mcp_tokens / "linear.json",
        tmp_path / "innocent.txt",
        tmp_path / "alias" / ".env",
        home.path / "media" / ".." / ".env",
    )

    for path in own:
        with pytest.raises(FileUnreadable, match="belongs to the gateway itself"):
            await media.copy(str(path), key="out-1", limit=LIMIT)


async def test_a_file_we_keep_can_be_sent_on(media: MediaFolder) -> None:
    await media.keep(pieces(b"hello"), key="in-1", limit=LIMIT)

    kept = await media.copy(str(media.path("in-1")), key="out-1", limit=LIMIT)

    assert kept.size == 5


async def test_files_of_long_ago_are_found_and_half_written_ones_go(
    home: Home, media: MediaFolder
) -> None:
    for name in ("in-1", "in-2", f"{HALF_WRITTEN}a", f"{HALF_WRITTEN}b", "a stranger's"):
        (home.media / name).write_text("x")
    for name in ("in-1", f"{HALF_WRITTEN}a", "a stranger's"):
        os.utime(home.media / name, (0, 0))

    found = await media.left_behind(before=datetime.now(UTC) - timedelta(hours=1))
    await media.remove([*found, "in-9"])

    assert found == ["in-1"]
    assert names(home.media) == [f"{HALF_WRITTEN}b", "a stranger's", "in-2"]


async def test_a_write_that_is_cancelled_at_any_moment_leaves_nothing(
    home: Home, media: MediaFolder
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x"
            await asyncio.sleep(0)

    for turns in range(60):
        task = asyncio.create_task(media.keep(slow(), key="in-1", limit=LIMIT))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert set(names(home.media)) <= {"in-1"}
