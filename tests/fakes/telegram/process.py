"""Starts the server as a process and drives it over HTTP: for tests that kill other processes."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import httpx

ROOT: Final = Path(__file__).resolve().parents[3]
_STOP_SECONDS: Final = 10


class TelegramProcess:
    """A running server; `do` takes the verbs of `tests.fakes.telegram.verbs`."""

    def __init__(self, process: "subprocess.Popen[str]", urls: dict[str, str]) -> None:
        self.pid = process.pid
        self.base_url = urls["base_url"]
        self.driver_url = urls["driver_url"]
        self._client = httpx.Client(base_url=self.driver_url, timeout=120, trust_env=False)

    def do(self, verb: str, **args: object) -> Any:
        """Do something in the chats, or ask about them.

        Raises:
            AssertionError: it could not be done, or what was waited for did not come.
        """
        answer = self._client.post(f"/{verb}", json=args)
        body = cast("dict[str, Any]", answer.json())
        if not answer.is_success:
            raise AssertionError(f"{verb} {args}: {body['error']}")
        return body["result"]

    def close(self) -> None:
        self._client.close()


@contextmanager
def telegram_process(
    *, port: int = 0, state: Path | None = None, unlimited: bool = False
) -> Generator[TelegramProcess]:
    """Run the server until the end of the block.

    Raises:
        AssertionError: at the end, when a program did what Telegram would not stand.
    """
    command = [sys.executable, "-m", "tests.fakes.telegram", "--port", str(port)]
    command += [] if state is None else ["--state", str(state)]
    command += ["--unlimited"] if unlimited else []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the server ended before it listened"
            driver = TelegramProcess(process, json.loads(line))
            try:
                yield driver
                found = driver.do("violations")
            finally:
                driver.close()
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
    assert not found, "\n".join(["what Telegram would not stand:", *found])
