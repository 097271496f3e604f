"""What became of the files of messages."""

from gateway.domain.operations.files import SettleFile
from store.codec import storable
from store.operations.deliveries import enqueue
from store.sql import files as sql
from store.work import Work


def settle_file(work: Work, settle: SettleFile) -> bool:
    """Record what became of a pending file, and tell its chat; False when it is known already."""
    values = {
        "file": settle.file,
        "state": settle.state.value,
        "key": storable(settle.key) or None,
        "size": settle.size,
        "sha": settle.sha256 or None,
        "problem": storable(settle.problem) or None,
    }
    if not work.run(sql.SETTLE, values):
        return False
    if settle.notice is not None:
        enqueue(work, settle.notice)
    return True
