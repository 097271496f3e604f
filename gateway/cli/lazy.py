"""Commands that are imported when they run: help and completion only read this table."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyCommand:
    """Where a command's Typer application is (`module:attribute`), and its line in the help."""

    target: str
    help: str


class LazyGroup(TyperGroup):
    """A group whose commands in `lazy` are stand-ins until one of them is called."""

    lazy: ClassVar[Mapping[str, LazyCommand]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, command in self.lazy.items():
            self.add_command(TyperCommand(name, help=command.help, rich_markup_mode=None), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the called command in the place of its stand-in."""
        found = self.lazy.get(args[0])
        if found is not None:
            self.add_command(_load(found, args[0]), args[0])
        return super().resolve_command(ctx, args)


def _load(command: LazyCommand, name: str) -> Any:
    module, _, attribute = command.target.partition(":")
    application: typer.Typer = getattr(importlib.import_module(module), attribute)
    loaded: Any = typer.main.get_command(application)
    loaded.name = name
    _write_plainly(loaded)
    return loaded


def _write_plainly(command: Any) -> None:
    """Importing rich for a help text takes longer than everything else about it."""
    command.rich_markup_mode = None
    for below in getattr(command, "commands", {}).values():
        _write_plainly(below)
