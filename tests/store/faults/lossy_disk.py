"""A disk that remembers only what was synced, put under SQLite through its own file interface (VFS).

Every write, truncation, sync and deletion of this process's databases passes here. `cut` says what
a disk would hold if the power went at that moment: all that was synced, and of the rest what chance
lets through, whole, torn at a sector, or not at all, in any order.
"""

import _sqlite3
import ctypes
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

SECTOR: Final = 512
_OK: Final = 0


class _IoMethods(ctypes.Structure):
    """`sqlite3_io_methods`, version 3; what is not wrapped keeps its address."""

    _fields_: ClassVar = [
        ("version", ctypes.c_int),
        ("close", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("truncate", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
        # From the size of a file to the end of a memory map.
        ("others", ctypes.c_void_p * 13),
    ]


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs`, version 3."""

    _fields_: ClassVar = [
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("max_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        # From access to the overridable system calls.
        ("others", ctypes.c_void_p * 14),
    ]


_pointer = ctypes.c_void_p
_OPEN: Final = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _pointer, _pointer, ctypes.c_int, _pointer)
_DELETE: Final = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _pointer, ctypes.c_int)
_WRITE: Final = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _pointer, ctypes.c_int, ctypes.c_int64)
_TRUNCATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, ctypes.c_int64)
_SYNC: Final = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, ctypes.c_int)


@dataclass(frozen=True, slots=True)
class _Change:
    """A write at an offset, or (`data` None) a truncation to it."""

    offset: int
    data: bytes | None

    def apply(self, image: bytearray) -> None:
        if self.data is None:
            del image[self.offset :]
            return
        if len(image) < self.offset:
            image.extend(bytes(self.offset - len(image)))
        image[self.offset : self.offset + len(self.data)] = self.data

    def torn(self, chance: random.Random) -> "_Change":
        if self.data is None or len(self.data) <= SECTOR:
            return self
        kept = chance.randrange(0, len(self.data), SECTOR)
        return _Change(self.offset, self.data[:kept])


class LossyDisk:
    """What of the files would survive; `on_change` is called after each change, inside its lock."""

    def __init__(self, *, syncs: Callable[[str], bool], on_change: Callable[[], None]) -> None:
        self._syncs = syncs
        self._on_change = on_change
        self._lock = threading.RLock()
        self._durable: dict[str, bytearray] = {}
        self._pending: dict[str, list[_Change]] = {}
        self._paths: dict[int, str] = {}
        self._methods: dict[int, _IoMethods] = {}
        self._kept: list[object] = []

    def remember(self, path: Path) -> None:
        """Take a file's present content as synced; before SQLite opens it in this process."""
        self._durable[str(path)] = bytearray(path.read_bytes())

    def cut(self, chance: random.Random) -> dict[str, bytes]:
        """Return what is left of each file when the power goes now."""
        with self._lock:
            return {
                path: self._remains(image, self._pending.get(path, []), chance)
                for path, image in self._durable.items()
            }

    def install(self) -> None:
        """Become the way in which this process's SQLite reaches files from now on."""
        library: Any = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        address: int = library.sqlite3_vfs_find(None)
        below = _Vfs.from_address(address)
        above = _Vfs.from_buffer_copy(below)
        above.name = b"lossy"
        open_below, delete_below = _OPEN(below.open), _DELETE(below.delete)

        def open_file(_vfs: int, name: int, file: int, flags: int, out: int) -> int:
            result: int = open_below(address, name, file, flags, out)
            if result == _OK and name:
                self._opened(file, ctypes.string_at(name).decode())
            return result

        def delete(_vfs: int, name: int, sync: int) -> int:
            result: int = delete_below(address, name, sync)
            with self._lock:
                path = ctypes.string_at(name).decode()
                self._durable.pop(path, None)
                self._pending.pop(path, None)
            return result

        above.open = self._keep(_OPEN(open_file))
        above.delete = self._keep(_DELETE(delete))
        self._kept.append(above)
        if library.sqlite3_vfs_register(ctypes.byref(above), 1) != _OK:
            raise RuntimeError("SQLite refused the file interface")

    def _opened(self, file: int, path: str) -> None:
        with self._lock:
            self._paths[file] = path
            self._durable.setdefault(path, bytearray())
            slot = ctypes.c_void_p.from_address(file)
            below = slot.value
            if below is None:
                return
            if below not in self._methods:
                self._methods[below] = self._wrap(_IoMethods.from_address(below))
            slot.value = ctypes.addressof(self._methods[below])

    def _wrap(self, below: _IoMethods) -> _IoMethods:
        above = _IoMethods.from_buffer_copy(below)
        write_below, truncate_below = _WRITE(below.write), _TRUNCATE(below.truncate)
        sync_below = _SYNC(below.sync)

        def write(file: int, data: int, amount: int, offset: int) -> int:
            self._change(file, _Change(offset, ctypes.string_at(data, amount)))
            return write_below(file, data, amount, offset)

        def truncate(file: int, size: int) -> int:
            self._change(file, _Change(size, None))
            return truncate_below(file, size)

        def sync(file: int, flags: int) -> int:
            result: int = sync_below(file, flags)
            self._synced(file)
            return result

        above.write = self._keep(_WRITE(write))
        above.truncate = self._keep(_TRUNCATE(truncate))
        above.sync = self._keep(_SYNC(sync))
        return above

    def _change(self, file: int, change: _Change) -> None:
        with self._lock:
            self._pending.setdefault(self._paths[file], []).append(change)
            self._on_change()

    def _synced(self, file: int) -> None:
        with self._lock:
            path = self._paths[file]
            if self._syncs(path):
                for change in self._pending.pop(path, []):
                    change.apply(self._durable[path])
            self._on_change()

    def _remains(self, image: bytearray, pending: list[_Change], chance: random.Random) -> bytes:
        left = bytearray(image)
        # A disk may lose all of it, or write any part of it in any order.
        if pending and chance.random() < 0.7:
            for change in chance.sample(pending, chance.randint(0, len(pending))):
                (change.torn(chance) if chance.random() < 0.3 else change).apply(left)
        return bytes(left)

    def _keep(self, callback: Any) -> int | None:
        # SQLite holds only the address; Python must not collect what is behind it.
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value
