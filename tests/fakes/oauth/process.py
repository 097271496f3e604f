"""Starts the world as a process and drives it over HTTP: for tests of more than one process."""

import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import httpx

ROOT: Final = Path(__file__).resolve().parents[3]
_STOP_SECONDS: Final = 10


class OAuthProcess:
    """A running world; `do` takes the verbs of `tests.fakes.oauth.__main__`."""

    def __init__(self, process: "subprocess.Popen[str]", urls: Mapping[str, str]) -> None:
        self.pid = process.pid
        self.url = urls["url"]
        self.issuer = urls["issuer"]
        self._client = httpx.Client(base_url=urls["driver_url"], timeout=30, trust_env=False)

    def do(self, verb: str, **args: object) -> Any:
        """Do something, or ask what happened.

        Raises:
            AssertionError: It could not be done.
        """
        answer = self._client.post(f"/{verb}", json=args)
        body = cast("dict[str, Any]", answer.json())
        if not answer.is_success:
            raise AssertionError(f"{verb} {args}: {body['error']}")
        return body["result"]

    def token_posts(self, grant: str = "") -> list[Mapping[str, Any]]:
        """Return the token requests, or those with a grant type of that end."""
        posts = cast("list[Mapping[str, Any]]", self.do("seen", path="/oauth/token"))
        return [seen for seen in posts if seen["form"].get("grant_type", "").endswith(grant)]

    def close(self) -> None:
        self._client.close()


@contextmanager
def oauth_process(**settings: object) -> Generator[OAuthProcess]:
    """Run a world until the end of the block; `settings` are fields of `Settings`, as JSON has them."""
    command = [sys.executable, "-m", "tests.fakes.oauth", "--settings", json.dumps(settings)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the world ended before it listened"
            world = OAuthProcess(process, json.loads(line))
            try:
                yield world
            finally:
                world.close()
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
