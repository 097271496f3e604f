"""`hermes gateway setup` against a platform: by options alone, and with somebody at the terminal."""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.on_telegram import ANNA, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.chat import Chat, hermes
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

if TYPE_CHECKING:
    import subprocess

TOKEN: Final = "TELEGRAM_BOT_TOKEN"


@pytest.fixture(scope="module")
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


def set_up(
    home: Path, town: TelegramProcess, *args: str, token: str | None = None
) -> "subprocess.CompletedProcess[str]":
    given = town.do("bot")["token"] if token is None else token
    command = ["gateway", "setup", "telegram", "--base-url", town.base_url, "--token-stdin"]
    return hermes(home, *command, *args, stdin=f"{given}\n")


def configured(home: Path) -> str:
    return (home / "config.yaml").read_text(encoding="utf-8")


@requirement("cli.gateway.setup_install")
def test_without_a_terminal_options_say_everything_and_the_bot_answers_then(
    home: Path, town: TelegramProcess
) -> None:
    done = set_up(home, town, "--allow", "333", "--admin", str(ANNA), "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert (report["platform"], report["name"]) == ("telegram", "@hermes_test_bot")
    assert "privacy mode is on" in report["notes"][0]
    assert "privacy mode is on" in done.stderr
    token = town.do("bot")["token"]
    assert (home / ".env").read_text() == f"{TOKEN}={token}\n"
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
    text = configured(home)
    assert f"token: ${{{TOKEN}}}" in text
    assert "demo-server" in text
    assert token not in text + done.stdout + done.stderr
    assert hermes(home, "config", "check").returncode == 0

    with Gateway(home) as gateway:
        asked = town.do("say", chat=ANNA, text="/whoami")["id"]
        said = town.do("wait", chat=ANNA, contains="role", after=asked, seconds=30)["text"]
        assert "admin" in said
        again = set_up(home, town, "--yes")
        assert again.returncode == 0
        assert "nothing had to be changed" in again.stderr
        assert "when it is started again" in again.stderr
        assert gateway.end() == 0


@requirement("cli.gateway.setup_install")
def test_nothing_that_is_set_is_replaced_unasked_and_the_rest_of_the_files_stays(
    home: Path, town: TelegramProcess
) -> None:
    before = (
        "# mine\nmodel: openai:gpt-5-mini\nplatforms:\n  telegram:\n"
        "    allow_from: ['5']  # Eve\n    reply_to: all\n"
    )
    (home / "config.yaml").write_text(before)
    (home / ".env").write_text(f"# keys\n{TOKEN}=1:other\nOPENAI_API_KEY=sk-x\n")

    refused = set_up(home, town, "--yes", "--model", "openai:gpt-5", "--allow", "6")
    assert refused.returncode == 1
    assert f"{TOKEN}, model is set; --force replaces it" in refused.stderr
    assert configured(home) == before

    done = set_up(home, town, "--yes", "--model", "none", "--allow", "6", "--force")
    assert done.returncode == 0, done.stderr
    text = configured(home)
    assert text.startswith("# mine\nplatforms:\n")
    assert "reply_to: all" in text
    assert re.search(r"allow_from:.*\n?.*5.*\n?.*6", text)
    assert (home / ".env").read_text().splitlines() == [
        "# keys",
        f"{TOKEN}={town.do('bot')['token']}",
        "OPENAI_API_KEY=sk-x",
    ]


@requirement("cli.gateway.setup_install")
@pytest.mark.parametrize(
    ("args", "token", "code", "words"),
    [
        (("--yes",), "1:unknown", 1, "the token is not valid"),
        (("--yes",), "", 1, "no token on standard input"),
        ((), None, 1, "without a terminal, say --yes"),
        (("--yes", "--allow", "anna"), None, 2, "nobody's id"),
        (("--yes", "--model", "frob"), None, 2, "say who serves frob"),
        (("--yes", "--base-url", "http://127.0.0.1:9"), None, 1, "cannot be reached"),
        (("--yes", "--base-url", "ftp://x"), None, 1, "must be an http or https address"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_writes_nothing(
    home: Path,
    town: TelegramProcess,
    args: tuple[str, ...],
    token: str | None,
    code: int,
    words: str,
) -> None:
    done = set_up(home, town, *args, token=token)
    assert done.returncode == code, done.stderr
    assert words in " ".join(re.sub("[│╭╮╰╯─]", " ", done.stderr).split())
    assert "Traceback" not in done.stderr
    assert [path.name for path in home.iterdir()] == []


def test_a_platform_that_is_not_known_is_a_mistake_of_usage(home: Path) -> None:
    done = hermes(home, "gateway", "setup", "irc", "--yes")
    assert done.returncode == 2
    assert "say which: telegram" in done.stderr


@requirement("cli.gateway.setup_install")
def test_at_the_terminal_it_asks_and_never_shows_the_token(
    home: Path, town: TelegramProcess
) -> None:
    token = town.do("bot")["token"]
    args = ("gateway", "setup", "--base-url", town.base_url)
    with Chat(home, args=args, terminal=True) as chat:
        chat.expect("Token of the bot.*not shown")
        chat.say(token)
        chat.expect("this is @hermes_test_bot")
        chat.expect("may talk to it")
        chat.say("anna")
        chat.expect("not understood: anna is not one of them")
        chat.say(f"{ANNA}, 222")
        chat.expect("admins")
        chat.say("333")
        chat.expect("not understood: 333")
        chat.say(str(ANNA))
        chat.expect("Model, as provider:name.*guided mode")
        chat.say("openai:gpt-5-mini")
        chat.expect("Key for openai.*empty for none")
        chat.say("sk-typed")
        chat.expect("Write .*config.yaml.*N]")
        chat.say("y")
        chat.expect("Start it with: hermes gateway run")
        assert chat.wait() == 0
        assert token not in chat.seen + chat.output
        assert "sk-typed" not in chat.seen + chat.output
    assert (home / ".env").read_text() == f"{TOKEN}={token}\nOPENAI_API_KEY=sk-typed\n"
    text = configured(home)
    assert "model: openai:gpt-5-mini" in text
    assert f"telegram:{ANNA}" in text

    with Chat(home, args=args, terminal=True) as chat:
        chat.expect(f"{TOKEN} is set; use that token")
        chat.say("")
        chat.expect("listed are 111, 222")
        chat.say("")
        chat.expect("admins")
        chat.say("")
        chat.expect("empty keeps openai:gpt-5-mini")
        chat.say("none")
        chat.expect("This replaces: model")
        chat.expect("Write .*N]")
        chat.say("n")
        chat.expect("nothing was changed")
        assert chat.wait() == 1
    assert configured(home) == text
