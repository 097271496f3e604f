"""A disk or a database that lets nobody write, under a real service: said, survived, nothing lost."""

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, configure, sent, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.soak.ledger import reading
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

DISK: Final = "6m"
BLOCK: Final = b"x" * 4096


@pytest.fixture(scope="module")
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


@pytest.fixture
def telegram_home(house: House, town: TelegramProcess) -> House:
    configure(house, town)
    return house


@contextmanager
def mounted(path: Path, *options: str) -> Generator[None]:
    """Mount something over a directory until the block ends."""
    if shutil.which("mount") is None or os.getuid() != 0:
        pytest.skip("only root can mount")
    for each in options:
        subprocess.run(["mount", *each.split(), str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def small_disk(house: House) -> Generator[Path]:
    """Put the home on a disk of its own; yield what fills it up once it is written to the end."""
    with mounted(house.path, f"-t tmpfs -o size={DISK},mode=700 tmpfs"):
        yield house.path / "ballast"


@contextmanager
def read_only(house: House) -> Generator[None]:
    home = str(house.path)
    with mounted(house.path, f"--bind {home}", "-o remount,ro,bind"):
        yield


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        file.writelines(itertools.repeat(BLOCK))


def status(house: House) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(hermes(house.path, "gateway", "status", "--json").stdout)
    return found


def said_by_people(house: House) -> list[str]:
    with reading(house.path) as database:
        rows = database.execute("SELECT body FROM message WHERE role = 'user' ORDER BY id")
        return [body for (body,) in rows.fetchall()]


@contextmanager
def locked(house: House) -> Generator[sqlite3.Connection]:
    """Hold the database as a foreign program may, until the block ends or rolls back."""
    with closing(sqlite3.connect(house.path / "state.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database


def talk(town: TelegramProcess, text: str) -> None:
    said = town.do("say", chat=ANNA, text=text)
    town.do("wait", chat=ANNA, contains=f"You said: {text}", after=said["id"], seconds=60)


@requirement("fault.f14")
def test_on_a_full_disk_nothing_is_acknowledged_and_all_is_answered_once_there_is_room(
    house: House, town: TelegramProcess
) -> None:
    with small_disk(house) as ballast:
        configure(house, town)
        with Gateway(house.path) as gateway:
            talk(town, "before the disk is full")
            fill(ballast)
            waiting = town.do("say", chat=ANNA, text="while it is full")
            eventually(lambda: status(house)["store"]["state"] == "busy", what="a busy store")
            found = status(house)
            shown = hermes(house.path, "gateway", "status")
            assert not found["healthy"]
            assert "disk is full" in found["store"]["reason"]
            assert "disk is full" in shown.stdout
            assert shown.returncode == 1
            assert said_by_people(house) == ["before the disk is full"]
            # Asking for what is next would have confirmed it.
            assert [item["message"]["text"] for item in town.do("pending")] == ["while it is full"]

            ballast.unlink()
            said = "You said: while it is full"
            town.do("wait", chat=ANNA, contains=said, after=waiting["id"], seconds=60)
            eventually(lambda: status(house)["healthy"], what="a healthy gateway")
            assert gateway.end() == 0
            assert "disk is full" in gateway.stderr
        assert said_by_people(house) == ["before the disk is full", "while it is full"]
    assert len(sent(town, said)) == 1


@requirement("fault.f14")
def test_on_a_full_disk_killed_and_started_again_nothing_is_lost(
    house: House, town: TelegramProcess
) -> None:
    with small_disk(house) as ballast:
        configure(house, town)
        with Gateway(house.path) as gateway:
            talk(town, "there was room")
            fill(ballast)
            waiting = town.do("say", chat=ANNA, text="killed while full")
            eventually(lambda: status(house)["store"]["state"] == "busy", what="a busy store")
            gateway.kill()
        ballast.unlink()
        with Gateway(house.path) as gateway:
            said = "You said: killed while full"
            town.do("wait", chat=ANNA, contains=said, after=waiting["id"], seconds=60)
            assert gateway.end() == 0
        assert said_by_people(house) == ["there was room", "killed while full"]


@requirement("fault.f13")
def test_a_database_that_is_locked_at_the_start_is_said_to_be_and_waited_for(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        assert gateway.end() == 0
    with (
        locked(telegram_home) as database,
        Gateway(telegram_home.path, ready=False) as gateway,
    ):
        eventually(lambda: "database is locked" in gateway.stderr, what="a word about the lock")
        database.execute("ROLLBACK")
        assert gateway.read_until("ready")
        talk(town, "after the lock")
        assert gateway.end() == 0


@requirement("fault.f13")
def test_a_database_that_is_locked_while_people_write_holds_them_up_and_loses_nothing(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway, locked(telegram_home) as database:
        waiting = town.do("say", chat=ANNA, text="while it is locked")
        eventually(lambda: status(telegram_home)["store"]["state"] == "busy", what="a busy store")
        assert status(telegram_home)["store"]["reason"] == "database is locked"
        database.execute("ROLLBACK")
        said = "You said: while it is locked"
        town.do("wait", chat=ANNA, contains=said, after=waiting["id"], seconds=60)
        assert gateway.end() == 0


@requirement("fault.f15")
def test_a_home_that_may_not_be_written_is_refused_in_one_sentence_and_stays_as_it_is(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        talk(town, "while it may be written")
        assert gateway.end() == 0
    with read_only(telegram_home):
        refused = hermes(telegram_home.path, "gateway", "run")
    assert refused.returncode == 1
    assert "is not writable; set HERMES_HOME" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    with Gateway(telegram_home.path) as gateway:
        talk(town, "and again")
        assert gateway.end() == 0
    assert said_by_people(telegram_home) == ["while it may be written", "and again"]
