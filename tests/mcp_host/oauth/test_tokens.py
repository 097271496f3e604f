"""Token files: private from the first byte, whole at any kill, and read as people write them."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_host.oauth.tokens import BadTokenFile, Client, Tokens, TokenStore
from tests.support.eventually import eventually
from tests.support.killed import killed_at
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[3]
NOW = 1_800_000_000.0
OLD = Tokens(access_token="old", refresh_token="old-refresh", url="https://a.example/mcp")
WHOLE = Tokens(
    access_token="access",
    refresh_token="refresh",
    expires_at=NOW,
    lifetime=3_600,
    scope="mcp",
    wanted_scope="admin",
    url="https://a.example/mcp",
    issuer="https://as.example",
    client=Client(
        client_id="c",
        client_secret="s",
        auth_method="client_secret_post",
        redirect_uri="http://127.0.0.1:1/callback",
        issuer="https://as.example",
    ),
    login="l",
)

KILLED = """
from pathlib import Path
from mcp_host.oauth.tokens import Tokens, TokenStore

tokens = Tokens(access_token="new" * 1000, refresh_token="new-refresh")
armed()
TokenStore(Path(sys.argv[2])).write("s", tokens)
"""

WRITING = """
import itertools, sys
from pathlib import Path
from mcp_host.oauth.tokens import Tokens, TokenStore

store = TokenStore(Path(sys.argv[1]))
for number in itertools.count():
    store.write("s", Tokens(access_token=str(number) * 20_000, refresh_token=str(number)))
"""

HOLDING = """
import asyncio, sys
from pathlib import Path
from mcp_host.oauth.tokens import TokenStore

async def hold():
    async with TokenStore(Path(sys.argv[1])).locked("s"):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


def child(script: str, *args: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(tmp_path / "mcp-tokens")


def by_hand(store: TokenStore, content: str | bytes, *, written: float = NOW) -> Path:
    store.directory.mkdir(exist_ok=True)
    path = store.path("s")
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (written, written))
    return path


def test_what_is_written_is_read_again_to_the_last_field(store: TokenStore) -> None:
    store.write("s", WHOLE)

    assert store.read("s") == WHOLE
    assert store.read("t") is None
    assert files(store.directory) == ["s.json"]


def test_secrets_are_not_shown_by_what_shows_tokens() -> None:
    shown = repr(WHOLE)

    assert not {"'access'", "'refresh'", "'s'"} & set(shown.replace(",", " ").split())
    assert "access_token=" not in shown
    assert "client_secret=" not in shown


@requirement("case.oa9", "threat.s12", "fault.f11")
def test_a_kill_at_any_step_of_a_write_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    ends: list[str | None] = []
    while not ends or ends[-1] is not None:
        store = TokenStore(tmp_path / f"tokens{len(ends)}")
        store.write("s", OLD)
        # The directory is opened to make the rename last, which has happened by then.
        renamed = "os.rename" in ends
        ends.append(killed_at(len(ends) + 1, KILLED, store.directory))
        found = store.read("s")
        assert found is not None
        assert found.access_token == ("new" * 1000 if renamed else "old")
        for name in files(store.directory):
            assert mode(store.directory / name) == 0o600

    assert {"open", "os.rename", "os.listdir", None} <= set(ends)


@requirement("case.oa9")
def test_under_a_loose_umask_a_file_is_private_before_it_has_its_name(store: TokenStore) -> None:
    kinds: list[str | None] = []
    while "os.rename" not in kinds:
        kinds.append(killed_at(len(kinds) + 1, KILLED, store.directory))
        assert kinds[-1] is not None

    (left,) = files(store.directory)
    assert left.endswith(".tmp")
    assert "new-refresh" in (store.directory / left).read_text()
    assert mode(store.directory / left) == 0o600
    assert mode(store.directory) == 0o700


@requirement("threat.s12")
def test_what_a_killed_process_left_half_done_is_removed_by_the_next_write(
    store: TokenStore,
) -> None:
    store.write("s", OLD)
    left = store.directory / ".s.0123456789ab.tmp"
    left.write_text("a token")
    others = store.directory / ".other.0123456789ab.tmp"
    others.write_text("being written now")

    store.write("s", WHOLE)

    assert files(store.directory) == [others.name, "s.json"]


@requirement("threat.s12", "fault.f11")
@pytest.mark.parametrize("_kill", range(5))
def test_a_kill_at_a_random_moment_leaves_a_whole_file(store: TokenStore, _kill: int) -> None:
    with child(WRITING, store.directory) as process:
        eventually(store.path("s").exists)
        for _ in range(20):
            found = store.read("s")
            assert found is not None
            assert found.access_token == (found.refresh_token or "") * 20_000
        process.kill()

    found = store.read("s")
    assert found is not None
    assert found.access_token == (found.refresh_token or "") * 20_000


@requirement("threat.s12")
def test_a_link_is_neither_read_nor_written_through(store: TokenStore, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    target.write_text(json.dumps({"access_token": "theirs"}))
    store.directory.mkdir()
    store.path("s").symlink_to(target)

    with pytest.raises(BadTokenFile, match=r"s\.json is not used: it is a link"):
        store.read("s")
    store.write("s", WHOLE)

    assert json.loads(target.read_text()) == {"access_token": "theirs"}
    assert not store.path("s").is_symlink()
    assert store.read("s") == WHOLE


@requirement("threat.s12")
async def test_a_link_in_place_of_a_lock_is_not_followed(store: TokenStore, tmp_path: Path) -> None:
    store.directory.mkdir()
    (store.directory / ".s.lock").symlink_to(tmp_path / "made by us")

    with pytest.raises(BadTokenFile, match="cannot be made"):
        async with store.locked("s"):
            pass

    assert not (tmp_path / "made by us").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"access_token": "a", "refresh_tok', "it is no JSON, or was cut off"),
        ("", "it is no JSON, or was cut off"),
        (b"\xff\xfe\x00", "it is no JSON, or was cut off"),
        ("[" * 100_000, "it is no JSON, or was cut off"),
        ('["access_token"]', "it is no JSON object"),
        ('{"refresh_token": "r"}', "it has no access_token"),
        ('{"access_token": 7}', "it has no access_token"),
        ('{"access_token": "a", "token_type": "mac"}', "its token_type is not Bearer"),
        (" " * (1 << 20) + "{}", "it is too large"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_a_sentence_and_kept(
    store: TokenStore, content: str | bytes, why: str
) -> None:
    path = by_hand(store, content)
    before = path.read_bytes()

    with pytest.raises(BadTokenFile) as refused:
        store.read("s")

    assert str(refused.value) == f"{path} is not used: {why}"
    assert path.read_bytes() == before


def test_what_is_no_file_is_refused_and_waits_for_nobody(store: TokenStore) -> None:
    store.directory.mkdir()
    os.mkfifo(store.path("s"))
    store.path("t").mkdir()

    for server in ("s", "t"):
        with pytest.raises(BadTokenFile, match="it is no file"):
            store.read(server)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_a_directory_without_the_right_to_write_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    store = TokenStore(tmp_path / "mcp-tokens")
    try:
        with pytest.raises(BadTokenFile, match=r"s\.json cannot be written: permission denied"):
            store.write("s", WHOLE)
    finally:
        tmp_path.chmod(0o700)


def test_a_place_that_cannot_hold_files_is_named_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "mcp-tokens").write_text("a file")
    store = TokenStore(tmp_path / "mcp-tokens")

    with pytest.raises(BadTokenFile, match=r"s\.json cannot be written: (file exists|not a dir)"):
        store.write("s", WHOLE)

    assert (tmp_path / "mcp-tokens").read_text() == "a file"


async def test_a_write_that_fails_leaves_the_file_before_and_no_rest(store: TokenStore) -> None:
    store.write("s", OLD)
    script = """
import resource, sys
from pathlib import Path
from mcp_host.oauth.tokens import BadTokenFile, Tokens, TokenStore

# No file of this process may have more than these bytes: a disk that is full.
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    TokenStore(Path(sys.argv[1])).write("s", Tokens(access_token="x" * 1000))
except BadTokenFile as error:
    print(error)
"""
    with child(script, store.directory) as process:
        said, _ = process.communicate(timeout=30)

    assert said == f"{store.path('s')} cannot be written: file too large\n"
    assert store.read("s") == OLD
    assert files(store.directory) == ["s.json"]


@requirement("oauth.tokens.hand_written")
@pytest.mark.parametrize("kind", [{"token_type": "Bearer"}, {"token_type": "bearer"}, {}])
@pytest.mark.parametrize(
    ("lifetime", "refresh"), [(3_600, None), ("3600", "refresh"), (3_600.5, "refresh")]
)
def test_a_file_written_by_hand_is_read_and_lives_from_when_it_was_written(
    store: TokenStore, kind: dict[str, str], lifetime: object, refresh: str | None
) -> None:
    given: dict[str, Any] = {"access_token": "mine", "expires_in": lifetime, **kind}
    by_hand(store, json.dumps(given if refresh is None else {**given, "refresh_token": refresh}))

    found = store.read("s")

    assert found is not None
    assert (found.access_token, found.refresh_token) == ("mine", refresh)
    assert found.expires_at == NOW + float(str(lifetime))
    assert (found.url, found.issuer, found.client) == (None, None, None)


@requirement("oauth.tokens.hand_written")
@pytest.mark.parametrize("lifetime", [None, True, "soon", "nan", "inf", [], 1e999])
def test_a_lifetime_that_is_none_leaves_the_end_open(store: TokenStore, lifetime: object) -> None:
    by_hand(store, json.dumps({"access_token": "mine", "expires_in": lifetime}))

    found = store.read("s")

    assert found is not None
    assert found.expires_at is None
    assert found.valid_at(NOW + 1e9)


def test_a_file_that_others_could_read_is_closed_to_them(store: TokenStore) -> None:
    path = by_hand(store, '{"access_token": "mine"}')
    path.chmod(0o644)
    store.directory.chmod(0o755)

    store.read("s")
    assert mode(path) == 0o600

    store.write("s", WHOLE)
    assert mode(store.directory) == 0o700


@pytest.mark.parametrize(
    ("lifetime", "left", "valid"),
    [
        (3_600, 11, True),
        (3_600, 10, False),
        (60, 1, True),
        (60, 0, False),
        (None, 1, True),
        (None, -1, False),
    ],
)
def test_a_token_that_lasts_is_renewed_before_its_end_and_a_short_one_is_used_up(
    lifetime: float | None, left: float, valid: bool
) -> None:
    tokens = Tokens(access_token="a", expires_at=NOW, lifetime=lifetime)

    assert tokens.valid_at(NOW - left) is valid


def test_a_sign_in_that_ended_leaves_who_we_are_and_no_token(store: TokenStore) -> None:
    store.write("s", WHOLE.without_tokens())

    found = store.read("s")

    assert found is not None
    assert (found.access_token, found.refresh_token, found.client) == ("", None, WHOLE.client)
    assert not found.valid_at(0)
    assert "access" not in json.loads(store.path("s").read_text()).values()


def test_each_change_gives_a_file_another_stamp_and_none_gives_none(store: TokenStore) -> None:
    stamps = [store.stamp("s")]
    for tokens in (WHOLE, WHOLE, OLD):
        store.write("s", tokens)
        stamps.append(store.stamp("s"))
    assert store.remove("s")
    assert not store.remove("s")
    stamps.append(store.stamp("s"))

    assert stamps[0] is stamps[-1] is None
    assert len(set(stamps[1:4])) == 3


@requirement("oauth.tokens.bound")
def test_servers_of_similar_names_have_files_of_their_own(store: TokenStore) -> None:
    names = ["a", "A", "a.b", "a-b", "a_b", "a.json", "a.lock", "a.cimd-off"]
    for name in names:
        store.write(name, Tokens(access_token=name))

    assert [found.access_token for name in names if (found := store.read(name))] == names
    assert len({store.path(name) for name in names}) == len(names)


async def test_the_lock_is_for_one_at_a_time_and_ends_with_its_block(store: TokenStore) -> None:
    inside: list[str] = []
    entered, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with store.locked("s"):
            entered.set()
            await leave.wait()
            inside.append("first")

    async def second() -> None:
        await entered.wait()
        async with store.locked("s"):
            inside.append("second")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first())
        tasks.create_task(second())
        await entered.wait()
        async with store.at_once("s", "lock") as alone, store.at_once("t", "lock") as another:
            assert (alone, another) == (False, True)
        leave.set()

    assert inside == ["first", "second"]


@requirement("threat.s12")
async def test_a_lock_ends_with_the_process_that_held_it(store: TokenStore) -> None:
    store.directory.mkdir()
    with child(HOLDING, store.directory) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        async with store.at_once("s", "lock") as alone:
            assert not alone
        process.kill()
        async with asyncio.timeout(10), store.locked("s"):
            store.write("s", WHOLE)

    assert store.read("s") == WHOLE
