"""The store: conversations, turns, questions, deliveries and events in one database file."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.open import OpenStore, open_store

__all__ = ["OpenStore", "open_store"]


def __getattr__(name: str) -> object:
    # Taking or asking for the lock of a home must not load everything that reads and writes.
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("store.open"), name)
    raise AttributeError(name)
