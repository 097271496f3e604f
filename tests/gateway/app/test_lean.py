"""A platform's library loads without what a gateway never uses, and nobody else is kept from it."""

import subprocess
import sys
import threading

import pytest

from gateway.app.lean import left_out

SPARE = "tabnanny"
"""A module of the standard library that nothing imports."""

LOADS = """
import sys
from gateway.app.lean import UNUSED_BY_CHATS, left_out
with left_out(UNUSED_BY_CHATS):
    import telegram
    from telegram.request import HTTPXRequest
HTTPXRequest()
print(*sorted({"cryptography", "httpx._main", "rich", "pygments"} & set(sys.modules)))
import cryptography.hazmat.backends, httpx._main
"""


@pytest.fixture(autouse=True)
def spare_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, SPARE, raising=False)


def test_telegram_loads_without_what_it_takes_as_optional_and_others_get_it_later() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == ""


def test_what_is_left_out_is_not_found_until_the_block_ends() -> None:
    with left_out((SPARE,)), pytest.raises(ModuleNotFoundError, match="left out"):
        __import__(SPARE)

    assert __import__(SPARE).__name__ == SPARE


def test_another_thread_is_not_kept_from_it() -> None:
    found: list[object] = []
    with left_out((SPARE,)):
        other = threading.Thread(target=lambda: found.append(__import__(SPARE)))
        other.start()
        other.join()

    assert [str(getattr(module, "__name__", "")) for module in found] == [SPARE]
