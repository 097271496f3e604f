import stat
import threading
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.load import load
from gateway.config.writer import changed, parse_argument, set_value, write_first
from gateway.domain.errors import ConfigError
from tests.support.killed import killed_at
from tests.support.requirement import requirement

TEXT = """\
# My gateway.
gateway:
    max_rounds: 20   # enough

    workspace: "."

x-notes: {owner: 'me'}   # a foreign key

mcp_servers:
    # The notes.
    notes:
        command: hermes
        args:
          - demo-server
          - ${TOKEN}
    my.server: {command: x}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path)
    found.config_file.write_text(TEXT)
    return found


@requirement("config.writer.round_trip_set")
@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("gateway.max_rounds", 5, "max_rounds: 20", "max_rounds: 5 "),
        ("gateway.workspace", "~/x", 'workspace: "."', 'workspace: "~/x"'),
        ("mcp_servers.notes.command", "yes", "command: hermes", 'command: "yes"'),
        (
            "mcp_servers.my.server.command",
            "y.z",
            "my.server: {command: x}",
            "my.server: {command: y.z}",
        ),
    ],
)
def test_setting_a_key_changes_its_line_and_nothing_else(
    home: Home, key: str, value: object, old: str, new: str
) -> None:
    set_value(home, key, value)
    assert home.config_file.read_text() == TEXT.replace(old, new)


@requirement("config.writer.round_trip_set")
def test_a_new_key_joins_its_section(home: Home) -> None:
    set_value(home, "mcp_servers.notes.tools.policy", {"add_*": "ask"})
    text = home.config_file.read_text()
    assert [line for line in TEXT.splitlines() if line not in text.splitlines()] == []
    assert "        tools:\n            policy:\n                add_*: ask\n" in text


@requirement("threat.s19")
def test_a_round_trip_leaves_placeholders_as_they_are(home: Home) -> None:
    home.env_file.write_text("TOKEN=canary-7f3a\n")
    loaded = load(home, environ={})
    assert loaded.config.mcp_servers["notes"].args == ("demo-server", "canary-7f3a")
    set_value(home, "gateway.max_rounds", 5)
    assert "${TOKEN}" in home.config_file.read_text()
    assert "canary" not in home.config_file.read_text()


def test_a_file_of_comments_keeps_them(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config_file.write_text("# Only a comment.")
    set_value(home, "model", "openai:gpt-5-mini")
    assert home.config_file.read_text() == "# Only a comment.\nmodel: openai:gpt-5-mini\n"


def test_a_home_without_a_file_gets_one(tmp_path: Path) -> None:
    set_value(Home(tmp_path), "gateway.max_rounds", 5)
    assert Home(tmp_path).config_file.read_text() == "gateway:\n  max_rounds: 5\n"
    assert stat.S_IMODE(Home(tmp_path).config_file.stat().st_mode) == 0o600


def test_a_key_below_a_plain_value_is_refused(home: Home) -> None:
    with pytest.raises(ConfigError, match="max_rounds is not a mapping"):
        changed(home, "gateway.max_rounds.x", 1)
    assert home.config_file.read_text() == TEXT


@pytest.mark.parametrize("key", ["", "gateway.", ".x", "a..b"])
def test_a_key_without_a_name_is_refused(home: Home, key: str) -> None:
    with pytest.raises(ConfigError, match="is not a key"):
        changed(home, key, 1)


def test_a_number_as_a_key_is_found_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config_file.write_text("a:\n  -1001: old\n")
    set_value(home, "a.-1001", "new")
    assert home.config_file.read_text() == "a:\n  -1001: new\n"


def test_a_broken_file_is_never_written(home: Home) -> None:
    home.config_file.write_text("a: [1\n")
    with pytest.raises(ConfigError):
        set_value(home, "a", 1)
    assert home.config_file.read_text() == "a: [1\n"


def test_the_first_file_is_written_as_given_and_only_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert write_first(home, "# Welcome.\ngateway: {}\n")
    assert not write_first(home, "other: {}\n")
    assert home.config_file.read_text() == "# Welcome.\ngateway: {}\n"
    assert stat.S_IMODE(home.config_file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("5", 5),
        ("-1.5", -1.5),
        ("null", None),
        ("[a, 1]", ["a", 1]),
        ("{a: b}", {"a": "b"}),
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("You: are kind # really", "You: are kind # really"),
        ("yes", "yes"),
        ("", ""),
    ],
)
def test_an_argument_of_a_shell_is_read_as_a_person_means_it(text: str, value: object) -> None:
    assert parse_argument(text) == value


@requirement("config.writer.atomic")
def test_whoever_reads_while_it_is_written_sees_a_whole_file(home: Home) -> None:
    seen: set[object] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(load(home, environ={}).config.gateway.max_rounds)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for rounds in range(20, 80):
            set_value(home, "gateway.max_rounds", rounds)
    finally:
        over.set()
        reader.join()

    # A half-written file would have been an error, or the default.
    assert seen <= set(range(20, 80))
    assert len(seen) > 1
    assert [path.name for path in home.path.iterdir()] == ["config.yaml"]


KILLED = """
from pathlib import Path
from gateway.config.home import Home
from gateway.config.writer import changed, save

home = Home(Path(sys.argv[2]))
text = changed(home, "gateway.max_rounds", 21)
armed()
save(home, text)
"""


@requirement("fault.f11")
def test_a_kill_at_any_step_of_a_write_leaves_the_old_file_or_the_new(home: Home) -> None:
    new = changed(home, "gateway.max_rounds", 21)
    ends: list[str | None] = []
    while not ends or ends[-1] is not None:
        home.config_file.write_text(TEXT)
        # The directory is opened to make the rename last, which has happened by then.
        renamed = "os.rename" in ends
        ends.append(killed_at(len(ends) + 1, KILLED, home.path))
        assert home.config_file.read_text() == (new if renamed else TEXT)

    assert {"open", "os.rename", None} <= set(ends)
