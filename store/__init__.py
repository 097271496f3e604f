"""The store: conversations, turns, questions, deliveries and events in one database file."""

from store.open import OpenStore, open_store

__all__ = ["OpenStore", "open_store"]
