import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.watch import ConfigWatch
from gateway.runtime.clock import SystemClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FIRST = "mcp_servers: {}\n"
OTHER = "mcp_servers: {notes: {command: notes}}\n"


class Watched:
    """A home that is watched; `heard` has what `config.yaml` held at each change."""

    def __init__(self, path: Path) -> None:
        self.home = Home(path)
        self.file = self.home.config_file
        self.heard: list[str | None] = []

    async def hear(self) -> None:
        self.heard.append(self.file.read_text() if self.file.exists() else None)

    async def has_heard(self, *told: str | None) -> None:
        await eventually_async(lambda: len(self.heard) >= len(told), what="the change")
        assert self.heard == list(told)


@asynccontextmanager
async def watching(path: Path) -> AsyncGenerator[Watched]:
    watched = Watched(path)
    if not watched.file.is_symlink():
        watched.file.write_text(FIRST)
    watch = ConfigWatch(watched.home, SystemClock())
    task = asyncio.create_task(watch.run(watched.hear))
    try:
        yield watched
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_change_is_told_once_from_the_first_moment_on(tmp_path: Path) -> None:
    async with watching(tmp_path) as watched:
        watched.file.write_text(OTHER)
        await watched.has_heard(OTHER)
        watched.file.write_text(FIRST)
        await watched.has_heard(OTHER, FIRST)


@requirement("mcp.watch.content")
async def test_what_is_touched_or_saved_unchanged_is_no_change(tmp_path: Path) -> None:
    async with watching(tmp_path) as watched:
        watched.file.touch()
        watched.file.write_text(FIRST)
        fresh = tmp_path / "config.yaml.new"
        fresh.write_text(FIRST)
        fresh.rename(watched.file)
        (tmp_path / "notes.txt").write_text("something else")
        # Only what follows is told.
        (tmp_path / ".env").write_text("TOKEN=1\n")
        await watched.has_heard(FIRST)


@requirement("mcp.watch.content")
async def test_a_file_under_the_pen_is_told_when_it_is_whole(tmp_path: Path) -> None:
    async with watching(tmp_path) as watched:
        with watched.file.open("w") as file:
            for letter in OTHER:
                file.write(letter)
                file.flush()
                await asyncio.sleep(0)
        await watched.has_heard(OTHER)


@requirement("mcp.watch.content")
async def test_an_editor_that_renames_is_heard_once(tmp_path: Path) -> None:
    async with watching(tmp_path) as watched:
        watched.file.rename(tmp_path / "config.yaml~")
        fresh = tmp_path / ".config.yaml.swp"
        fresh.write_text(OTHER)
        fresh.rename(watched.file)
        await watched.has_heard(OTHER)


async def test_a_file_that_is_gone_is_told_and_so_is_its_return(tmp_path: Path) -> None:
    async with watching(tmp_path) as watched:
        watched.file.unlink()
        await watched.has_heard(None)
        watched.file.write_text(OTHER)
        await watched.has_heard(None, OTHER)


async def test_a_swapped_link_and_a_change_where_it_leads_are_told(tmp_path: Path) -> None:
    first, second, home = tmp_path / "1", tmp_path / "2", tmp_path / "home"
    for folder in (first, second, home):
        folder.mkdir()
        (folder / "config.yaml").write_text(FIRST)
    (second / "config.yaml").write_text(OTHER)
    (home / "config.yaml").unlink()
    (home / "config.yaml").symlink_to(first / "config.yaml")
    async with watching(home) as watched:
        os.symlink(second / "config.yaml", home / "fresh")
        (home / "fresh").rename(watched.file)
        await watched.has_heard(OTHER)
        (second / "config.yaml").write_text(FIRST)
        await watched.has_heard(OTHER, FIRST)


async def test_a_home_that_is_moved_away_and_made_anew_is_watched_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with watching(home) as watched:
        home.rename(tmp_path / "away")
        await watched.has_heard(None)
        home.mkdir()
        watched.file.write_text(OTHER)
        await watched.has_heard(None, OTHER)
