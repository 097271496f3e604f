"""A person on the Telegram of the tests, and homes whose gateway is the bot she talks to."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.e2e.house import House
from tests.fakes.telegram.process import TelegramProcess, telegram_process
from tests.support.chat import hermes

ANNA: Final = 111


@contextmanager
def telegram_with_anna() -> Generator[TelegramProcess]:
    """Run the service with one bot and one person who has started it."""
    with telegram_process(unlimited=True) as running:
        running.do("bot")
        running.do("user", id=ANNA, name="Anna")
        running.do("private", user=ANNA)
        yield running


UNHURRIED: Final = {"rate": {"user_per_minute": 0, "chat_per_minute": 0}}
"""Section `access`: tests write faster than people."""


def configure(house: House, service: TelegramProcess, **more: object) -> None:
    token = service.do("bot")["token"]
    account = {
        "token": token,
        "base_url": service.base_url,
        "allow_from": [str(ANNA)],
        "home_channel": str(ANNA),
        **more,
    }
    house.configure(platforms={"telegram": account}, access=UNHURRIED)


def sent(service: TelegramProcess, text: str) -> list[dict[str, Any]]:
    return [item for item in service.do("messages", chat=ANNA) if item["text"] == text]


def platform_status(home: Path) -> dict[str, Any]:
    """Return what `status` says of the one platform there is."""
    done = hermes(home, "gateway", "status", "--json")
    found: dict[str, Any]
    (found,) = json.loads(done.stdout)["platforms"]
    return found


def asked(service: TelegramProcess, text: str) -> int:
    """Let Anna ask for a run of the gated tool; return the id of its card."""
    said = service.do("say", chat=ANNA, text=f"call write {json.dumps({'text': text})}")
    card = service.do("wait", chat=ANNA, label="Allow once", after=said["id"])
    found: int = card["id"]
    return found
