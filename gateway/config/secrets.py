"""Which configured values are secrets, so that logs and `config show` can leave them out."""

from collections.abc import Iterable, Iterator

from gateway.config.interpolate import Lookup
from gateway.telemetry.secrets import is_secret, secrets_of

__all__ = ["is_secret", "looked_up_secrets", "secrets_of"]


def looked_up_secrets(lookups: Iterable[Lookup]) -> Iterator[str]:
    """Yield what came from the environment into a secret place, a header or a secret's name."""
    for lookup in lookups:
        if is_secret(lookup.path) or is_secret((lookup.variable,)) or "headers" in lookup.path:
            yield lookup.value
