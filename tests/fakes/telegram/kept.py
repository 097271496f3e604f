"""The world in a file, for a server that goes on where it ended."""

from pathlib import Path

from pydantic import TypeAdapter

from tests.fakes.telegram.state import World


def save(world: World, path: Path) -> None:
    path.write_bytes(TypeAdapter(World).dump_json(world))


def load(path: Path) -> World:
    return TypeAdapter(World).validate_json(path.read_bytes())
