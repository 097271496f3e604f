"""The fakes themselves, where other tests rely on more than a queue of replies."""

import asyncio
import json
import sys
from pathlib import Path
from typing import cast

import pytest

from gateway.providers.config import parse_model
from gateway.providers.models import open_model
from tests.fakes.chat_completions import chat_completions
from tests.fakes.model_script import Asked, load_script
from tests.gateway.providers.asking import request

pytestmark = pytest.mark.anyio

RULES = {
    "rules": [
        {"when": {"role": "tool"}, "reply": {"text": "It is sunny."}},
        {
            "when": {"last": "(?i)weather", "offers": "look_up"},
            "times": 1,
            "reply": {"calls": [{"name": "look_up", "arguments": {"day": "today"}}]},
        },
        {"reply": {"text": "pardon?"}},
    ]
}


def asked(text: str, *, role: str = "user") -> Asked:
    return Asked(text=text, role=role, offers=frozenset({"look_up"}), model="m")


def test_rules_answer_by_what_was_said_last(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(RULES), encoding="utf-8")
    script = load_script(file)

    replies = [
        script.next(asked("The weather?")),
        script.next(asked("raw", role="tool")),
        script.next(asked("The weather?")),
    ]

    assert replies[0].raw_calls == (("look_up", '{"day": "today"}'),)
    assert [reply.text for reply in replies[1:]] == ["It is sunny.", "pardon?"]


async def test_without_a_script_it_echoes() -> None:
    async with chat_completions() as fake:
        config = parse_model({"provider": "openai", "name": "m", "base_url": fake.url})
        async with open_model(config) as model:
            assert (await model.complete(request())).text == "You said: hello"


async def test_it_serves_as_a_process_of_its_own(tmp_path: Path) -> None:
    script, record = tmp_path / "script.json", tmp_path / "asked.jsonl"
    script.write_text(json.dumps([{"text": "from the file"}]), encoding="utf-8")
    command = ["-m", "tests.fakes.chat_completions", "--script", str(script)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--record", str(record), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = cast("dict[str, str]", json.loads(await process.stdout.readline()))
        config = parse_model({"provider": "openai", "name": "m", "base_url": line["url"]})
        async with open_model(config) as model:
            reply = await model.complete(request())
    finally:
        process.terminate()
        await process.communicate()

    assert reply.text == "from the file"
    assert json.loads(record.read_text(encoding="utf-8"))["body"]["model"] == "m"
