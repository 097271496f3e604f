import os
import socket
import stat
from pathlib import Path

import pytest

from gateway.control.binding import bound_socket
from gateway.control.paths import socket_path
from gateway.domain.errors import HomeError
from tests.support.requirement import requirement


def test_the_socket_is_in_the_home_when_its_path_fits(tmp_path: Path) -> None:
    assert socket_path(Path("/h"), environ={}) == Path("/h/gateway.sock")
    fits = Path("/" + "h" * 93)
    assert len(os.fsencode(fits / "gateway.sock")) == 107
    assert socket_path(fits, environ={}) == fits / "gateway.sock"


def test_a_deep_home_has_a_short_path_that_every_client_finds(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    link = tmp_path / ("l" * 100)
    link.symlink_to(deep)

    found = socket_path(deep, environ={"XDG_RUNTIME_DIR": "/run/user/7"})

    assert found.parent == Path("/run/user/7")
    assert found.name.startswith("hermes-")
    assert len(found.name) == len("hermes-.sock") + 16
    assert socket_path(link, environ={"XDG_RUNTIME_DIR": "/run/user/7"}) == found
    alone = socket_path(deep, environ={})
    assert (alone.parent.name, alone.name) == (f"hermes-{os.getuid()}", found.name)


@requirement("threat.s17")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_socket_is_private_from_birth_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with bound_socket(tmp_path / "gateway.sock"):
            mode = (tmp_path / "gateway.sock").stat().st_mode
        assert os.umask(umask) == umask
    finally:
        os.umask(before)

    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_ISSOCK(mode)
    assert not (tmp_path / "gateway.sock").exists()


def test_a_stale_socket_is_replaced_and_a_successors_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))

    with bound_socket(path):
        path.unlink()
        with bound_socket(path):
            successor = path.stat().st_ino
            path.rename(tmp_path / "kept")
        (tmp_path / "kept").rename(path)

    assert path.stat().st_ino == successor


@requirement("threat.s17")
def test_a_directory_that_others_can_enter_gets_no_socket(tmp_path: Path) -> None:
    shared = tmp_path / "hermes-1"
    shared.mkdir(mode=0o755)

    with pytest.raises(HomeError, match="not ours alone"), bound_socket(shared / "hermes-x.sock"):
        raise AssertionError("bound")

    with bound_socket(tmp_path / "new" / "hermes-x.sock"):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_place_where_nothing_can_be_bound_is_said(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "gateway.sock"

    with pytest.raises(HomeError, match="cannot be made: No such file"), bound_socket(path):
        raise AssertionError("bound")
