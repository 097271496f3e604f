"""Secrets from every place of the configuration, and all that people and files get to see of a busy day."""

import json
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.e2e.house import House, Model
from tests.e2e.on_telegram import ANNA, UNHURRIED, asked
from tests.fakes.telegram.process import TelegramProcess, telegram_process
from tests.fakes.telegram.town import TOKEN
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

CANARY: Final = "caNary"
"""In every secret below, and in nothing else."""
LOST_TOKEN: Final = f"7770002:{CANARY}-nobody-knows-this-bot-aaa"
AWAY_TOKEN: Final = f"7770003:{CANARY}-of-a-bot-not-reached-aaa"
HOOK_TOKEN: Final = f"7770004:{CANARY}-of-a-bot-with-a-webhook-a"
FOREIGN: Final = "sk-foreign0123456789abcdefghij"
"""A key of somebody else: only its shape tells what it is."""
BODY: Final = "the surprise party is on Friday"

_TELLS_ALL: Final = (
    "import os, sys; sys.stderr.write(f'{sys.argv} {dict(os.environ)}\\n'); sys.exit(3)"
)
_SECRETS: Final = re.compile(f"{CANARY}|{re.escape(TOKEN.partition(':')[2])}")


def secret(place: str) -> str:
    return f"{CANARY}-{place}-0123456789"


def mcp_servers(house: House) -> None:
    """One server that tells what it is asked, one that ends with all it knows, one out of reach."""
    secrets = {"API_TOKEN": secret("env"), "DSN": f"postgres://me:{secret('dsn')}@127.0.0.1/x"}
    house.serve(env=secrets)
    house.servers["tells"] = {
        "command": sys.executable,
        "args": ["-S", "-c", _TELLS_ALL, "--api-key", secret("arg"), f"--token={secret('option')}"],
        "env": {**secrets, "PASSED_ON_TOKEN": "${FROM_DOTENV}", "OF_OTHERS": FOREIGN},
    }
    house.servers["web"] = {
        "url": f"http://me:{secret('url')}@127.0.0.1:9/mcp",
        "headers": {"Authorization": f"Bearer {secret('bearer')}", "X-Mine": secret("header")},
        "client_cert": ["/nowhere/cert.pem", "/nowhere/key.pem", secret("certificate")],
        "oauth": {"client_id": "me", "client_secret": secret("oauth")},
        "connect_timeout": 2,
    }


def accounts(service: TelegramProcess, hook: str) -> Mapping[str, Any]:
    """Bots that work, that nobody knows, that cannot be reached, and one that is posted to."""
    return {
        "main": {
            "token": TOKEN,
            "base_url": service.base_url,
            "allow_from": [str(ANNA)],
            "home_channel": str(ANNA),
        },
        "lost": {"token": LOST_TOKEN, "base_url": service.base_url},
        "away": {
            "token": AWAY_TOKEN,
            "base_url": f"http://me:{secret('userinfo')}@127.0.0.1:9",
        },
        "hook": {
            "token": HOOK_TOKEN,
            "base_url": service.base_url,
            "mode": "webhook",
            "webhook": {"url": "https://me.example", "listen": hook, "secret": secret("webhook")},
        },
    }


def configure(house: House, service: TelegramProcess, hook: str) -> None:
    mcp_servers(house)
    (house.path / ".env").write_text(f"FROM_DOTENV={secret('dotenv')}\n", encoding="utf-8")
    key = {"provider": "openai", "name": "scripted", "base_url": house.model.url}
    house.configure(
        logging={"level": "debug"},
        access=UNHURRIED,
        model={
            **key,
            "api_key": secret("key"),
            "fallbacks": [{**key, "name": "second", "api_key": secret("fallback")}],
        },
        platforms={
            "telegram": {"accounts": accounts(service, hook)},
            "slack": {"bot_token": secret("slack"), "signing_secret": secret("signing")},
            "discord": {"token": secret("discord")},
        },
    )


def chat_a_day(service: TelegramProcess, home: Path) -> dict[str, str]:
    """Let everything happen that tells something; return what an approval looks like meanwhile."""

    def say(text: str, answer: str) -> None:
        said = service.do("say", chat=ANNA, text=text)
        service.do("wait", chat=ANNA, contains=answer, after=said["id"], seconds=30)

    say(BODY, BODY)
    say(f"my key is {FOREIGN}", "my key is")
    say("/status", "MCP servers:")
    for trouble in ("cut_after", "cut_before", "page", "refuse"):
        service.do("fail", trouble=trouble, method="sendMessage")
        say(f"over {trouble}", f"You said: over {trouble}")
    say("fail unauthorized", "key was refused")
    say("call environment {}", "Got:")
    say("/mcp", "exited with code 3")
    say("/mcp tells", "exited with code 3")
    card = asked(service, "milk")
    seen = hermes(home, "approvals", "list", "--all", "--json").stdout
    service.do("press", chat=ANNA, label="Allow once", message=card)
    service.do("wait", chat=ANNA, contains="Got: 1", after=card)
    return {"approvals": seen}


def asked_of_the_shell(home: Path) -> dict[str, str]:
    seen: dict[str, str] = {}
    for args in (
        ("gateway", "status", "--json"),
        ("mcp", "list", "--json"),
        ("mcp", "test", "tells", "--json"),
        ("mcp", "call", "box", "environment", "{}"),
        ("config", "show"),
        ("config", "check", "--json"),
        ("send", "--to", "telegram@lost:111", "hi"),
        ("chat", "-q", "call environment {}"),
    ):
        done = hermes(home, *args)
        seen[" ".join(args)] = done.stdout + done.stderr
    return seen


def written(home: Path) -> Iterator[tuple[str, str]]:
    """Yield what the files of a home hold, but those that people keep their secrets in."""
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.name not in {"config.yaml", ".env"}:
            yield str(path.relative_to(home)), path.read_bytes().decode("utf-8", "replace")


def free_address() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Mapping[str, str]:
    """All that was shown, printed and written, by the place where it was."""
    home = tmp_path_factory.mktemp("canaries") / "home"
    home.mkdir(mode=0o700)
    hook = free_address()
    with telegram_process(unlimited=True) as service:
        service.do("bot")
        service.do("bot", token=HOOK_TOKEN)
        service.do("user", id=ANNA, name="Anna")
        service.do("private", user=ANNA)
        configure(House(path=home, model=model), service, hook)
        with Gateway(home) as gateway:
            found = chat_a_day(service, home)
            forged = {"X-Telegram-Bot-Api-Secret-Token": "guessed"}
            refused = httpx.post(f"http://{hook}/", json={}, headers=forged, trust_env=False)
            found["refused post"] = refused.text
            service.do("down")
            eventually(
                lambda: "cannot be reached" in gateway.stderr.rpartition("@main")[2],
                what="a lost connection",
            )
            service.do("up")
            found |= asked_of_the_shell(home)
            found["state.db while it runs"] = dict(written(home))["state.db-wal"]
            assert gateway.end() == 0
        found |= {"stdout": gateway.stdout, "stderr": gateway.stderr}
        chat = service.do("messages", chat=ANNA, gone=True)
        found["chat"] = json.dumps(chat, ensure_ascii=False)
    return found | dict(written(home))


@requirement("threat.s13", "case.t25")
def test_no_configured_secret_is_shown_logged_or_stored(seen: Mapping[str, str]) -> None:
    assert len(seen["state.db"]) > 4096
    assert "DEBUG" in seen["stderr"]
    assert "DEBUG" in seen["logs/gateway.log"]
    # What would tell was told, with the secrets taken out.
    assert '"API_TOKEN": "***"' in json.loads(seen["mcp call box environment {}"])["text"]
    assert "API_TOKEN" in seen["chat"]
    assert "--token=***" in seen["logs/mcp-stderr.log"]
    assert "exited with code 3" in seen["chat"]

    leaks = {
        place: text[max(0, found.start() - 60) : found.end() + 40]
        for place, text in seen.items()
        if (found := _SECRETS.search(text))
    }
    assert leaks == {}


@requirement("case.ap16")
def test_what_people_write_is_in_no_log(seen: Mapping[str, str]) -> None:
    logs = [text for place, text in seen.items() if place.startswith("logs/")]

    assert len(logs) >= 3
    assert BODY in seen["chat"]
    for text in (*logs, seen["stderr"], seen["stdout"]):
        assert BODY not in text


@requirement("case.ap16")
def test_what_has_the_shape_of_a_key_is_in_no_log_either(seen: Mapping[str, str]) -> None:
    logs = [text for place, text in seen.items() if place.startswith("logs/")]

    assert "OF_OTHERS" in seen["logs/mcp-stderr.log"]
    for text in (*logs, seen["stderr"], seen["mcp test tells --json"]):
        assert FOREIGN not in text


@requirement("threat.s13")
def test_the_address_of_a_database_is_refused_without_its_password(house: House) -> None:
    house.configure(store={"url": f"postgresql://me:{secret('database')}@127.0.0.1:9/x"})

    done = hermes(house.path, "gateway", "run")

    assert done.returncode != 0
    said = "".join([done.stdout, done.stderr, *dict(written(house.path)).values()])
    assert CANARY not in said
