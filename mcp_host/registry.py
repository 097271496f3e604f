"""The tools that can be called, by the names they are called by. Knows no connections.

`register` does the work of one server (filter, clean, hash); a `Registry` puts the servers
together and leaves out every tool whose alias is not its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.domain.canonical import CanonicalJson, NotCanonical, canonical, sha256_of
from gateway.domain.tools import Selection, ToolHit, ToolSpec
from mcp_host.catalog import Catalog, ListedTool
from mcp_host.filters import ToolFilter
from mcp_host.naming import alias_for, older_alias_for
from mcp_host.network_config import Transport
from mcp_host.sanitize import (
    MAX_DESCRIPTION,
    MAX_TITLE,
    clean_line,
    clean_schema,
    clean_text,
    show_name,
)
from mcp_host.search import DEFAULT_LIMIT, ToolIndex
from mcp_host.server_config import ServerConfig
from mcp_host.trust import says_read_only
from mcp_host.utilities import utilities_of

MAX_NAME: Final = 256
MAX_DEFINITION: Final = 256_000
"""Characters of one tool's definition: a larger one would leave a model no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The tools of one server that passed its filter; `filtered` maps the others to why.

    `found` counts what the server listed; `off` maps utilities that are not there to why.
    """

    server: str
    specs: tuple[ToolSpec, ...] = ()
    filtered: Mapping[str, str]
    problems: tuple[str, ...] = ()
    found: int = 0
    off: Mapping[str, str] = field(default_factory=dict[str, str])


def register(server: str, config: ServerConfig, catalog: Catalog) -> Registered:
    """Make the specs of one server's tools: filtered, cleaned, with their hashes."""
    admitted = ToolFilter.of(config.tools)
    identity = server_sha(config)
    specs: list[ToolSpec] = []
    filtered: dict[str, str] = {}
    problems: list[str] = []
    for tool in catalog.tools:
        rejection = admitted.rejection(tool.name)
        if rejection is not None:
            filtered[tool.name] = rejection
            continue
        spec = _spec(server, identity, tool, config)
        if isinstance(spec, ToolSpec):
            specs.append(spec)
        else:
            problems.append(f"tool {_shown(tool.name)} left out: {spec}")
    utilities = utilities_of(config.tools, catalog)
    off = dict(utilities.off)
    native = {spec.alias for spec in specs}
    for tool in utilities.tools:
        spec = _spec(server, identity, tool, config, utility=True)
        if isinstance(spec, ToolSpec) and spec.alias not in native:
            specs.append(spec)
        else:
            off[tool.name] = "the server has a tool of that name"
    return Registered(
        server=server,
        # A page that lists a tool again says nothing new.
        specs=tuple({(spec.name, spec.definition_sha): spec for spec in specs}.values()),
        filtered=filtered,
        problems=tuple(problems),
        found=len(catalog.tools),
        off=off,
    )


def server_sha(config: ServerConfig) -> str:
    """Return the hash of who a server is, and who we are to it; no secret is in it.

    What is started, where, with which variables; or the URL, with which headers and identity.
    """
    if config.transport is not Transport.STDIO:
        identity = config.identity_header
        return sha256_of(
            canonical(
                {
                    "url": config.url,
                    "headers": sorted(map(str.lower, config.headers)),
                    "identity": [identity.name, identity.value] if identity else None,
                    "certificate": config.client_cert[0] if config.client_cert else None,
                }
            )
        )
    return sha256_of(
        canonical(
            {
                "command": config.command,
                "args": list(config.args),
                "env": sorted(config.env),
                "cwd": config.cwd,
            }
        )
    )


class Registry:
    """All registered tools. A value: a change makes a new one, and `close` frees the old.

    A name that several tools would have is nobody's, unless a tool of `before` has it already:
    what comes later never takes its place.
    """

    def __init__(
        self, servers: Sequence[Registered] = (), *, before: "Registry | None" = None
    ) -> None:
        wanting: dict[str, list[ToolSpec]] = {}
        for server in servers:
            for spec in server.specs:
                wanting.setdefault(spec.alias, []).append(spec)
        self._tools: dict[str, ToolSpec] = {}
        left_out: list[ToolSpec] = []
        for alias, specs in wanting.items():
            winner = _winner(specs, before.find_alias(alias) if before is not None else None)
            if winner is not None:
                self._tools[alias] = winner
            left_out += [spec for spec in specs if spec is not winner]
        self._collisions = _collisions(left_out, self._tools)
        self._by_server: dict[str, list[ToolSpec]] = {server.server: [] for server in servers}
        for spec in self._tools.values():
            self._by_server[spec.server].append(spec)
        self._notes = {server.server: self._notes_of(server) for server in servers}
        self._selections = {server.server: self._selection_of(server) for server in servers}
        # A name that also fits a tool left out is as ambiguous as one that fits two.
        self._other_names = _unambiguous(self._tools.values(), left_out)
        self._index: ToolIndex | None = None

    def tools(self) -> tuple[ToolSpec, ...]:
        """Every registered tool, in the order of its alias."""
        return tuple(self._tools[alias] for alias in sorted(self._tools))

    def of_server(self, server: str) -> tuple[ToolSpec, ...]:
        """The registered tools of one server, in its own order."""
        return tuple(self._by_server.get(server, ()))

    def notes(self, server: str) -> tuple[str, ...]:
        """What was left out of a server's tools, and why, one line each."""
        return self._notes.get(server, ())

    def selection(self, server: str) -> Selection:
        """What became of the tools a server offers."""
        return self._selections.get(server, Selection())

    @property
    def collisions(self) -> tuple[str, ...]:
        """One warning for each alias that more than one tool would have had."""
        return tuple(self._collisions.values())

    def find_alias(self, alias: str) -> ToolSpec | None:
        """Find by alias alone."""
        return self._tools.get(alias)

    def find(self, name: str) -> ToolSpec | None:
        """Find by alias, by the single-underscore form, or by a tool's own name, if unambiguous."""
        return self._tools.get(name) or self._other_names.get(name)

    def search(self, query: str, *, limit: int = DEFAULT_LIMIT) -> tuple[ToolHit, ...]:
        """Rank the registered tools for a query; the index is built by the first one."""
        if self._index is None:
            self._index = ToolIndex(self._tools.values())
        return self._index.search(query, limit=limit)

    def close(self) -> None:
        """Free the search index."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def _notes_of(self, server: Registered) -> tuple[str, ...]:
        counts = Counter(server.filtered.values())
        filtered = tuple(f"{count} filtered: {why}" for why, count in counts.items())
        collided = (self._collisions[alias] for alias in self._collided(server))
        return (*filtered, *collided, *server.problems)

    def _selection_of(self, server: Registered) -> Selection:
        return Selection(
            found=server.found,
            filtered=Counter(server.filtered.values()),
            collided=self._collided(server),
            utilities_off=server.off,
        )

    def _collided(self, server: Registered) -> tuple[str, ...]:
        aliases = dict.fromkeys(spec.alias for spec in server.specs)
        return tuple(alias for alias in aliases if alias in self._collisions)


def _spec(
    server: str, identity: str, tool: ListedTool, config: ServerConfig, *, utility: bool = False
) -> ToolSpec | str:
    """Return the spec of a tool, or why it has none."""
    if len(tool.name) > MAX_NAME:
        return f"its name has more than {MAX_NAME} characters"
    if show_name(tool.name, limit=MAX_NAME) != tool.name:
        return "its name has hidden characters"
    try:
        definition = _definition(tool)
    except NotCanonical:
        return "its definition is no proper JSON"
    if len(definition) > MAX_DEFINITION:
        return f"its definition has {len(definition)} characters"
    read_only = says_read_only(tool.annotations)
    return ToolSpec(
        server=server,
        name=tool.name,
        alias=alias_for(server, tool.name),
        title=clean_line(tool.title, limit=MAX_TITLE),
        description=clean_text(tool.description, limit=MAX_DESCRIPTION),
        input_schema=clean_schema(tool.input_schema),
        definition_sha=sha256_of(definition),
        server_sha=identity,
        read_only=read_only,
        idempotent=tool.annotations.get("idempotentHint") is True,
        destructive=not read_only and tool.annotations.get("destructiveHint") is not False,
        parallel=config.supports_parallel_tool_calls,
        utility=utility,
    )


def _definition(tool: ListedTool) -> CanonicalJson:
    """Return everything about a tool that its approval relies on, as it was sent."""
    return canonical(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
        }
    )


def _winner(specs: Sequence[ToolSpec], owner: ToolSpec | None) -> ToolSpec | None:
    """Return whose the name is: the only one's, its owner's, or the only native tool's."""
    if len(specs) == 1:
        return specs[0]
    if owner is not None:
        owned = [spec for spec in specs if _same(spec, owner)]
        if owned:
            # Listed twice with two definitions, it is as ambiguous as two tools.
            return owned[0] if len(owned) == 1 else None
    native = [spec for spec in specs if not spec.utility]
    return native[0] if len(native) == 1 else None


def _same(spec: ToolSpec, other: ToolSpec) -> bool:
    return (spec.server, spec.name) == (other.server, other.name)


def _collisions(left_out: Iterable[ToolSpec], registered: Mapping[str, ToolSpec]) -> dict[str, str]:
    names: dict[str, list[str]] = {}
    for spec in left_out:
        names.setdefault(spec.alias, []).append(_named(spec))
    found: dict[str, str] = {}
    for alias, same in names.items():
        kept = registered.get(alias)
        if kept is None:
            found[alias] = f"{alias} would be {' and '.join(same)}: none of them is registered"
        else:
            others = f"{' and '.join(same)} {'is' if len(same) == 1 else 'are'} left out"
            found[alias] = f"{alias} is {_named(kept)}: {others}"
    return found


def _named(spec: ToolSpec) -> str:
    return f"{spec.server}/{_shown(spec.name)}"


def _unambiguous(tools: Iterable[ToolSpec], left_out: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    found: dict[str, ToolSpec | None] = {}
    for spec in tools:
        for name in (older_alias_for(spec.server, spec.name), spec.name):
            found[name] = None if name in found else spec
    for spec in left_out:
        found[older_alias_for(spec.server, spec.name)] = None
        found[spec.name] = None
    return {name: spec for name, spec in found.items() if spec is not None}


def _shown(name: str) -> str:
    return f'"{show_name(name, limit=100)}"'
