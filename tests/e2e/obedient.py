"""A scripted model that does what a person's text says; run as a process it prints its URL.

    call TOOL {json}   calls a tool of the server `box` through `tool_call`
    direct TOOL {json} calls it as a function of its own; what is no JSON is sent as it is
    loop TOOL {json}   calls it again whatever comes back
    grow FILE TEXT     writes half of TEXT, and the rest once there is a FILE
    fail FAULT [N]     fails (for the first N times) with a fault of `tests.fakes.model_script`

Everything else is answered with "You said: …", the answer of a tool with "Got: …".
"""

import argparse
import asyncio
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tests.fakes.chat_completions import chat_completions
from tests.fakes.model_script import Asked, Reply, Script

CALL: Final = re.compile(r"(call|direct|loop) (\S+) (.*)", re.DOTALL)
GROW: Final = re.compile(r"grow (\S+) (.*)", re.DOTALL)
FAIL: Final = re.compile(r"fail (\S+)(?: (\d+))?(?: .*)?", re.DOTALL)


class Obedient(Script):
    """Knows only the last message, and which faults it has played."""

    def __init__(self) -> None:
        super().__init__()
        self._looping: Reply | None = None
        self._played: Counter[str] = Counter()

    def next(self, asked: Asked) -> Reply:
        """Answer a tool's answer, or do what the person says."""
        if asked.role == "tool":
            return self._looping or Reply(text=f"Got: {asked.text}")
        self._looping = None
        if called := CALL.fullmatch(asked.text):
            return self._call(*called.groups())
        if grows := GROW.fullmatch(asked.text):
            return Reply(text=grows[2], held=grows[1])
        if failed := FAIL.fullmatch(asked.text):
            return self._fail(asked.text, failed[1], failed[2])
        return Reply(text=f"You said: {asked.text}")

    def _call(self, how: str, tool: str, arguments: str) -> Reply:
        alias = f"mcp__box__{tool}"
        if how == "direct":
            return Reply(calls=((alias, arguments),))
        batch = f'{{"calls": [{{"name": "{alias}", "arguments": {arguments}}}]}}'
        reply = Reply(calls=(("tool_call", batch),))
        if how == "loop":
            self._looping = reply
        return reply

    def _fail(self, text: str, fault: str, times: str | None) -> Reply:
        self._played[text] += 1
        if times is not None and self._played[text] > int(times):
            return Reply(text=f"Fine after {fault}.")
        return Reply(text="This never comes to its end.", fault=fault, retry_after=0.05)


async def _serve(record: Path) -> None:
    async with chat_completions(Obedient(), record=record) as fake:
        sys.stdout.write(fake.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, required=True, help="gets every request")
    asyncio.run(_serve(parser.parse_args().record))


if __name__ == "__main__":
    main()
