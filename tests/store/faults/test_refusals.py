"""A database that cannot be used is refused as it is; an empty one never takes its place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.domain.errors import StoreBroken
from store import open_store
from tests.store.faults.rights import only_file_modes
from tests.store.samples import accept_text
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

COMMAND = "hermes store restore-check"
PAGE = 4096


async def make_store(path: Path) -> None:
    """A store with enough pages that damage in the middle is real damage."""
    async with open_store(path, clock=ManualClock()) as opened:
        for number in range(50):
            await opened.store.accept(accept_text("x" * 2_000, dedupe=f"{number}"))


def overwrite(offset: int, data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    return damage


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def lose_message_pages(path: Path) -> None:
    """Overwrite every other page behind the schema."""
    with path.open("r+b") as file:
        for page in range(2, path.stat().st_size // PAGE, 2):
            file.seek(page * PAGE)
            file.write(b"\xa5" * PAGE)


@requirement("fault.f15")
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(overwrite(0, b"not a database at all, sorry"), id="header"),
        pytest.param(overwrite(100, b"\xff" * 200), id="first page"),
        pytest.param(lose_message_pages, id="pages"),
        pytest.param(halve, id="half of it"),
    ],
)
async def test_a_damaged_database_is_refused_with_the_restore_command(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "state.db"
    await make_store(path)
    damage(path)
    before = path.read_bytes()

    with pytest.raises(StoreBroken) as refusal:
        async with open_store(path, clock=ManualClock()):
            pass

    assert COMMAND in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert path.read_bytes() == before, "it is left as it is"


@requirement("fault.f15")
async def test_something_else_in_the_place_of_the_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.mkdir()

    with pytest.raises(StoreBroken, match=COMMAND):
        async with open_store(path, clock=ManualClock()):
            pass

    assert list(path.iterdir()) == []


@requirement("fault.f15")
async def test_a_log_without_its_database_is_refused_and_kept(tmp_path: Path) -> None:
    path, log = tmp_path / "state.db", tmp_path / "state.db-wal"
    log.write_bytes(b"the only copy of acknowledged messages")

    with pytest.raises(StoreBroken, match=COMMAND):
        async with open_store(path, clock=ManualClock()):
            pass

    assert log.read_bytes() == b"the only copy of acknowledged messages"
    assert not path.exists() or path.stat().st_size == 0


@requirement("fault.f15")
async def test_a_database_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await make_store(path)
    path.chmod(0o444)
    before = path.read_bytes()

    with only_file_modes(), pytest.raises(StoreBroken, match=COMMAND):
        async with open_store(path, clock=ManualClock()):
            pass

    assert path.read_bytes() == before
