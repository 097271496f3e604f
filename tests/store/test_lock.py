"""One gateway per home."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.domain.errors import HomeError, HomeLocked
from store.lock import LOCK_NAME, hold_home
from tests.support.eventually import eventually

HOLDER = """
import sys
from pathlib import Path
from store.lock import hold_home
with hold_home(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_refused_at_once_and_told_which_process_is_first(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()

        started = time.monotonic()
        with pytest.raises(HomeLocked) as refused, hold_home(tmp_path):
            pass
        took = time.monotonic() - started
        holder.kill()

    assert refused.value.pid == holder.pid
    assert str(holder.pid) in refused.value.public_message
    assert took < 0.1


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGKILL)

    with hold_home(tmp_path):
        assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"


def test_the_lock_file_is_private_stays_and_names_nobody_afterwards(tmp_path: Path) -> None:
    with hold_home(tmp_path), pytest.raises(HomeLocked), hold_home(tmp_path):
        pass

    lock = tmp_path / LOCK_NAME
    assert lock.stat().st_mode & 0o777 == 0o600
    assert lock.read_text() == ""
    with hold_home(tmp_path):
        pass


def test_a_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with hold_home(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        eventually(lambda: child.poll() is None, what="the child runs")
        with hold_home(tmp_path):
            pass
    finally:
        child.communicate(b"\n")


def test_a_home_that_does_not_exist_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(HomeError), hold_home(tmp_path / "missing"):
        pass
