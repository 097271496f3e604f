"""The methods of the Bot API this server has, by their lower-case names."""

from collections.abc import Mapping

from tests.fakes.telegram.methods import accounts, editing, media, sending, updates
from tests.fakes.telegram.methods.call import Method

METHODS: Mapping[str, Method] = {
    name.lower(): method
    for module in (accounts, editing, media, sending, updates)
    for name, method in module.METHODS.items()
}

__all__ = ["METHODS", "Method"]
