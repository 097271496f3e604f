import os
import stat
from pathlib import Path

import pytest

from gateway.config.files import create_file, replace_file
from tests.support.requirement import requirement


@requirement("config.home.modes")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_file_is_private_from_its_first_moment(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        create_file(tmp_path / "new", "text")
        replace_file(tmp_path / "other", "text")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}


def test_replacing_leaves_nothing_else_behind(tmp_path: Path) -> None:
    replace_file(tmp_path / "config.yaml", "one\n")
    replace_file(tmp_path / "config.yaml", "two\n")
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    assert (tmp_path / "config.yaml").read_text() == "two\n"


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "config.yaml", "old\n")
    with pytest.raises(UnicodeEncodeError):
        replace_file(tmp_path / "config.yaml", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    assert (tmp_path / "config.yaml").read_text() == "old\n"


def test_a_symbolic_link_keeps_pointing_at_the_file_that_changed(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "hermes.yaml"
    real.write_text("old\n")
    link = tmp_path / "config.yaml"
    link.symlink_to(real)
    replace_file(link, "new\n")
    assert link.is_symlink()
    assert real.read_text() == "new\n"


def test_creating_never_takes_the_place_of_a_file(tmp_path: Path) -> None:
    assert create_file(tmp_path / "config.yaml", "first\n")
    assert not create_file(tmp_path / "config.yaml", "second\n")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert not create_file(tmp_path / "dangling", "x")
    assert (tmp_path / "config.yaml").read_text() == "first\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "dangling"]
