"""Inserts messages the way the gateway's intake does, for benches that time who reads them.

Reads lines `{"session_key", "text"}` on stdin; after each commit prints a line
`{"t": time.perf_counter()}`. Holds the home as a gateway would. Ends with its input.
"""

import argparse
import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final, TypedDict
from urllib.parse import unquote

from gateway.domain.ids import THREADED, Actor, ChatType, Place
from gateway.domain.message import InboundMessage
from gateway.domain.operations.inbound import Accept, Lane
from gateway.ports import InboundStore
from gateway.runtime.clock import SystemClock
from store import open_store
from store.lock import hold_home

PREFIX: Final = ["agent", "main"]


class Line(TypedDict):
    session_key: str
    text: str


def place_of(session_key: str) -> Place:
    """Read a session key back.

    Raises:
        ValueError: It is none.
    """
    parts = session_key.split(":")
    if parts[:2] != PREFIX or len(parts) < 5:
        raise ValueError(f"not a session key: {session_key}")
    platform, _, account = parts[2].partition("@")
    chat_type = ChatType(parts[3])
    chat, *rest = (unquote(part) for part in parts[4:])
    thread = rest.pop(0) if chat_type in THREADED and rest else ""
    return Place(
        platform=unquote(platform),
        account=unquote(account),
        chat=chat,
        chat_type=chat_type,
        thread=thread,
        participant=rest[0] if rest else "",
    )


async def write(home: Path) -> None:
    """Hold the store as a gateway would, and accept what stdin has."""
    async with open_store(home / "state.db", clock=SystemClock()) as opened:
        await accept_lines(opened.store)


async def accept_lines(store: InboundStore) -> None:
    """Accept one message for each line of stdin, and print when it was committed."""
    run = time.time_ns()
    for number in count():
        text = await asyncio.to_thread(sys.stdin.readline)
        if not text:
            return
        line: Line = json.loads(text)
        place = place_of(line["session_key"])
        event = InboundMessage(
            place=place,
            native_id=f"bench-{run}-{number}",
            dedupe=f"{place.platform}:{place.account}:bench-{run}-{number}",
            sender=Actor(platform=place.platform, id=place.participant or place.chat),
            sent_at=datetime.now(UTC),
            text=line["text"],
        )
        await store.accept(Accept(event=event, lane=Lane.TURN))
        print(json.dumps({"t": time.perf_counter()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.writer", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    home: Path = parser.parse_args().home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_home(home):
        asyncio.run(write(home))


if __name__ == "__main__":
    main()
