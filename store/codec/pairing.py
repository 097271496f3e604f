"""People who were given a code, from their rows."""

from gateway.domain.ids import PairingId
from gateway.domain.operations.pairing import HashedCode, Pairing, PairingState
from store.codec.columns import RowLike, clean, from_ms, from_ms_or_none
from store.codec.places import actor_or_none


def pairing_from_row(row: RowLike) -> Pairing:
    """Read a row of `pairing`.

    Raises:
        ValueError: Its state is none.
    """
    has_code = row["code_hash"] is not None and row["code_salt"] is not None
    return Pairing(
        id=PairingId(row["id"]),
        platform=clean(row["platform"]),
        account=clean(row["account"]),
        user=clean(row["user_id"]),
        name=clean(row["user_name"]),
        state=PairingState(row["state"]),
        created_at=from_ms(row["created_at"]),
        expires_at=from_ms_or_none(row["expires_at"]),
        decided_by=actor_or_none(row["decided_by"]),
        decided_at=from_ms_or_none(row["decided_at"]),
        code=HashedCode(hash=row["code_hash"], salt=row["code_salt"]) if has_code else None,
    )
