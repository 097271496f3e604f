import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gateway.config.home import Home, find_home
from gateway.domain.errors import ConfigError, HomeError
from tests.support.requirement import requirement


@requirement("config.home.location")
@pytest.mark.parametrize(
    ("environ", "profile", "expected"),
    [
        ({"HOME": "/u"}, None, "/u/.hermes"),
        ({"HOME": "/u", "HERMES_HOME": "/data"}, None, "/data"),
        ({"HERMES_HOME": "/data"}, None, "/data"),
        ({"HOME": "/u", "HERMES_HOME": "~/h"}, None, "/u/h"),
        ({"HERMES_HOME": "/data", "HERMES_PROFILE": "work"}, None, "/data/profiles/work"),
        ({"HERMES_HOME": "/data", "HERMES_PROFILE": "work"}, "play", "/data/profiles/play"),
        ({"HERMES_HOME": "/data", "HERMES_PROFILE": "work"}, "default", "/data"),
        ({"HERMES_HOME": "/data", "HERMES_PROFILE": ""}, None, "/data"),
    ],
)
def test_the_home_is_found_from_environment_and_profile(
    environ: dict[str, str], profile: str | None, expected: str
) -> None:
    assert find_home(environ, profile=profile).path == Path(expected)


@requirement("config.home.location")
def test_every_file_is_below_the_home() -> None:
    home = Home(Path("/data"))
    names = [
        str(path.relative_to(home.path))
        for path in (
            home.config_file,
            home.env_file,
            home.state_db,
            home.gateway_log,
            home.agent_log,
            home.mcp_stderr_log,
            home.mcp_tokens,
            home.schema_cache,
            home.mcp_installs,
            home.media,
        )
    ]
    assert names == [
        "config.yaml",
        ".env",
        "state.db",
        "logs/gateway.log",
        "logs/agent.log",
        "logs/mcp-stderr.log",
        "mcp-tokens",
        "cache/mcp_schema_cache.json",
        "mcp-installs",
        "media",
    ]


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "a b", "x" * 65, "a\nb"])
def test_a_profile_name_cannot_leave_the_profiles(name: str) -> None:
    with pytest.raises(ConfigError, match="profile"):
        find_home({"HERMES_HOME": "/data"}, profile=name)


@requirement("config.home.modes")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_directories_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    home = find_home({"HERMES_HOME": str(tmp_path / "a" / "b")}, profile="work")
    before = os.umask(umask)
    try:
        home.create()
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")) if path.is_dir()]
    assert len(made) == 9
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}


def test_creating_a_home_twice_changes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    (home.media / "kept").write_text("x")
    home.create()
    assert (home.media / "kept").exists()


@requirement("case.in6")
@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "/"}])
def test_without_a_home_directory_the_message_says_to_set_hermes_home(
    environ: dict[str, str],
) -> None:
    with pytest.raises(HomeError) as caught:
        find_home(environ)
    assert "set HERMES_HOME" in caught.value.public_message


@requirement("case.in6")
def test_a_home_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError) as caught:
        Home(tmp_path / "file" / "home").create()
    message = caught.value.public_message
    assert str(tmp_path / "file" / "home") in message
    assert "set HERMES_HOME" in message
    assert "\n" not in message


CREATE = """
import os, sys
from pathlib import Path
from gateway.config.home import Home
from gateway.domain.errors import HomeError
if os.getuid() == 0:
    os.setgroups([]); os.setgid(54321); os.setuid(54321)
try:
    Home(Path(sys.argv[1])).create()
except HomeError as error:
    print(error.public_message)
    sys.exit(1)
"""


def _create_as_somebody(home: Path) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-c", CREATE, str(home)],
        cwd=root,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@requirement("case.in6")
def test_any_user_may_use_a_home_it_can_write() -> None:
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o777)
        done = _create_as_somebody(place)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert stat.S_IMODE((place / "logs").stat().st_mode) == 0o700
    finally:
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir()
        place.rmdir()


@requirement("case.in6")
def test_a_home_of_another_user_is_a_sentence() -> None:
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o555)
        done = _create_as_somebody(place)
        assert done.returncode == 1
        assert f"{place} is not writable; set HERMES_HOME" in done.stdout
        assert done.stderr == ""
    finally:
        place.rmdir()
