"""Reads the syntax trees of the product: every way to a tool goes through the one gate."""

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.requirement import requirement

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("gateway", "mcp_host", "adapters", "store")
DISPATCH: Final = "mcp_host/dispatch.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A call, in its function; `text` is what is called, `line` orders the calls of a file."""

    file: str
    function: str
    text: str
    line: int
    node: ast.Call

    @property
    def where(self) -> str:
        return f"{self.file}::{self.function}"


@functools.cache
def calls() -> tuple[Site, ...]:
    """Return every call of the product."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(site for path in files for site in calls_of(path.read_text("utf-8"), path))


def calls_of(source: str, path: Path) -> Iterator[Site]:
    file = path.relative_to(ROOT).as_posix() if path.is_absolute() else path.as_posix()
    yield from _within(ast.parse(source), file, "")


def _within(node: ast.AST, file: str, function: str) -> Iterator[Site]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.Call):
            text = ast.unparse(child.func)
            yield Site(file=file, function=function, text=text, line=child.lineno, node=child)
        yield from _within(child, file, inner)


def sites(ending: str) -> list[str]:
    """Return where something with this end of a name is called."""
    return [site.where for site in calls() if f".{site.text}".endswith(f".{ending}")]


def says(site: Site, text: str) -> bool:
    return any(isinstance(part, ast.Constant) and part.value == text for part in site.node.args)


@requirement("case.ap6")
def test_a_call_leaves_a_connection_at_one_place_alone() -> None:
    assert sites("calls.run") == [f"{DISPATCH}::Dispatch._send_once"]


@requirement("case.ap6")
def test_that_place_is_reached_only_behind_the_gate() -> None:
    assert {*sites("_send_once")} == {f"{DISPATCH}::Dispatch._send"}
    assert [site for site in sites("self._send") if DISPATCH in site] == [
        f"{DISPATCH}::Dispatch._run"
    ]
    assert [site for site in sites("self._run") if DISPATCH in site] == [
        f"{DISPATCH}::Dispatch.call"
    ]
    lines: Mapping[str, int] = {
        site.text: site.line for site in calls() if site.where == f"{DISPATCH}::Dispatch.call"
    }
    assert lines["self._approved"] < lines["self._connect"] < lines["self._run"]


@requirement("case.ap6")
def test_a_call_of_a_tool_is_put_into_words_at_one_place_beside_a_proof_that_names_none() -> None:
    said = {site.where for site in calls() if says(site, "tools/call")}

    assert said == {
        "mcp_host/calls.py::call_tool",
        "mcp_host/oauth/proof.py::show_that_calls_are_let_by",
    }
    proof = next(site for site in calls() if says(site, "tools/call") and "proof.py" in site.file)
    assert "'name': NO_TOOL" in ast.unparse(proof.node)
    assert [site for site in sites("call_tool") if site.startswith("mcp_host/")] == []
    assert sites("dispatch.call") == ["mcp_host/host.py::McpHost.call"]


def test_a_second_way_would_be_seen() -> None:
    sneaky = "class Sneak:\n    async def go(self, c):\n        return await c.calls.run(1)\n"

    (found,) = calls_of(sneaky, Path("mcp_host/sneak.py"))

    assert (found.where, found.text) == ("mcp_host/sneak.py::Sneak.go", "c.calls.run")
