"""Keeps `tests/requirements.tsv` and the tests in step."""

import ast
import csv
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent
TABLE: Final = TESTS / "requirements.tsv"
STATES: Final = {"planned", "built"}


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def named_by_tests() -> dict[str, list[str]]:
    """Map each id named by a `@requirement` on a test function to the tests that name it."""
    named: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for identifier in marks(node):
                where = f"{path.relative_to(TESTS)}::{node.name}"
                named.setdefault(identifier, []).append(where)
    return named


def marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    found: list[str] = []
    for decorator in node.decorator_list:
        if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)):
            continue
        if decorator.func.id != "requirement" or not node.name.startswith("test_"):
            continue
        found += [
            argument.value
            for argument in decorator.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
    return found


def test_every_built_row_has_a_test_and_every_named_row_exists() -> None:
    known = {row["id"]: row["status"] for row in rows()}
    named = named_by_tests()

    unknown = {name: where for name, where in named.items() if name not in known}
    unproved = [name for name, status in known.items() if status == "built" and name not in named]

    assert not unknown
    assert not unproved


def test_the_table_is_whole() -> None:
    table = rows()
    ids = [row["id"] for row in table]

    assert len(ids) == len(set(ids))
    assert {row["status"] for row in table} <= STATES
    assert all(row["behaviour"] and row["source"] and row["issue"] for row in table)
