"""Codes that let a stranger in: made of letters that are not mistaken, kept only as a slow hash."""

import hashlib
import secrets
from hmac import compare_digest
from typing import Final

from gateway.domain.operations.pairing import HashedCode

CODE_CHARACTERS: Final = 8
ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
# About ten milliseconds and four megabytes: a code lives for an hour.
_COST: Final = 2**12
_BLOCK: Final = 8


def new_code() -> str:
    """Return a code that nobody can guess in the hour it is good for."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARACTERS))


def typed(code: str) -> str:
    """Return a code as it was made, however a person wrote it."""
    return "".join(code.split()).replace("-", "").upper()


def hashed(code: str) -> HashedCode:
    """Return what is kept of a code."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return HashedCode(hash=_digest(code, salt).hex(), salt=salt.hex())


def is_of(code: str, kept: HashedCode) -> bool:
    """Say whether `kept` is what was kept of this code."""
    try:
        salt, digest = bytes.fromhex(kept.salt), bytes.fromhex(kept.hash)
    except ValueError:
        return False
    return compare_digest(_digest(code, salt), digest)


def _digest(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=_COST, r=_BLOCK, p=1, dklen=_HASH_BYTES)
