"""Loads a library without parts it takes as optional and a gateway never uses: memory, for years."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Final

UNUSED_BY_CHATS: Final = ("httpx._main", "cryptography")
"""What HTTP from the command line is made with, and what reads Telegram passports: 10 MiB."""


UNUSED_ON_PIPES: Final = ("httpx2._main", "uvicorn")
"""What the MCP SDK serves and asks HTTP with from the command line: 4 MiB, and a part of its start."""


class _Absent(MetaPathFinder):
    """Says that modules are not installed, to one thread."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self._modules = modules
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Return None: whoever comes next in line finds it.

        Raises:
            ModuleNotFoundError: It is left out.
        """
        del path, target
        # The SDK may be loading in a thread of its own meanwhile, and it wants them.
        if fullname in self._modules and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is left out here", name=fullname)


@contextmanager
def left_out(modules: tuple[str, ...]) -> Generator[None]:
    """Let what this thread imports in the block do without these; later they can be had again."""
    absent = _Absent(modules)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
