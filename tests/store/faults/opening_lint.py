"""Finds code that reaches the database's files other than through SQLite.

One plain open and close in the gateway's process drops SQLite's locks on the file, and commits that
were acknowledged can vanish. So nothing but the store knows where the file is, except to hand that
on, and the store itself opens no files.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HANDED_TO: Final = frozenset({"open_store", "open_readers"})
"""What may be given the path."""
ASKED: Final = frozenset({"stat", "exists", "is_file", "parent", "name"})
"""What may be asked of the path: nothing of it opens the file."""
TOUCHING: Final = frozenset(
    {
        "open",
        "fdopen",
        "read_bytes",
        "read_text",
        "write_bytes",
        "write_text",
        "touch",
        "unlink",
        "remove",
        "rename",
        "replace",
        "truncate",
        "link",
        "symlink",
        "chmod",
        "copy",
        "copy2",
        "copyfile",
        "copyfileobj",
        "copytree",
        "move",
        "rmtree",
        "file_digest",
        "mmap",
    }
)
"""Calls that open, replace or delete a file."""
NAME: Final = "state_db"
FILES: Final = ("state.db", "-wal", "-shm", "-journal")
OPENS_OTHERS: Final = frozenset({"store/lock.py"})
"""Opens the lock of the home and no other file."""
KNOWS_THE_NAME: Final = frozenset({"gateway/config/home.py"})


def problems(source: str, path: str) -> list[str]:
    """Return what is wrong in a file of the code, `line: why` each."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = [*_paths(tree, parents, path), *_connections(tree, path)]
    if path.startswith("store/") and path not in OPENS_OTHERS:
        found += _touches(tree)
    return [f"{path}:{line}: {why}" for line, why in found]


def code_files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of every module of the four packages."""
    for package in ("gateway", "adapters", "mcp_host", "store"):
        for file in sorted((root / package).rglob("*.py")):
            yield file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")


def _paths(tree: ast.AST, parents: dict[ast.AST, ast.AST], path: str) -> Iterator[tuple[int, str]]:
    inside = path.startswith("store/") or path in KNOWS_THE_NAME
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == NAME and not _is_fine(node, parents):
            yield node.lineno, "the database's path is used for more than to hand it to the store"
        if inside or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        # Sentences may speak of the file; a name of it has no spaces.
        if " " not in node.value and node.value.endswith(FILES):
            yield node.lineno, f"{node.value!r} names a file of the database"


def _is_fine(node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> bool:
    parent = parents[node]
    if isinstance(parent, ast.Attribute):
        return parent.attr in ASKED
    if isinstance(parent, ast.keyword):
        parent = parents[parent]
    return isinstance(parent, ast.Call) and _name(parent.func) in HANDED_TO


def _connections(tree: ast.AST, path: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name(node.func) != "connect":
            continue
        if not ast.unparse(node.func).startswith(("sqlite3.", "aiosqlite.")):
            continue
        memory = bool(node.args) and ast.unparse(node.args[0]) == "':memory:'"
        if not memory and path != "store/engine.py":
            yield node.lineno, "only the store's engine opens databases"


def _touches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        # A bare name is a function of Python's or an import; `self.open()` and the like are not.
        if not isinstance(node, ast.Call) or _name(node.func) not in TOUCHING:
            continue
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "self":
            continue
        if isinstance(owner, ast.Constant) or _is_other_replace(node):
            continue
        yield node.lineno, f"{ast.unparse(node.func)}() opens or changes a file"


def _is_other_replace(call: ast.Call) -> bool:
    """Tell `text.replace(old, new)` and `dataclasses.replace(value, …)` from a path's and `os`'s."""
    if _name(call.func) != "replace" or ast.unparse(call.func) == "os.replace":
        return False
    return len(call.args) + len(call.keywords) > 1


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
