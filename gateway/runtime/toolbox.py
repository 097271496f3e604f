"""What a model's function calls mean: offers the functions, turns calls into steps, joins answers.

Searching and describing are answered here; asking a person and calling a server are steps.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from gateway.domain.canonical import CanonicalJson, NotCanonical, canonical, parse_json
from gateway.domain.model import FunctionAnswer, FunctionCall, FunctionSpec
from gateway.domain.text import shorten
from gateway.domain.tools import CallState, ServerState, ToolHit, ToolSpec
from gateway.ports import ToolHost
from gateway.runtime import functions
from gateway.runtime.config import ToolSearchConfig
from gateway.runtime.journal_text import Answer
from gateway.runtime.loose_json import list_in, object_in
from gateway.runtime.offered_schemas import offerable
from gateway.runtime.steps import Plan, Step

MAX_STEPS_PER_ROUND: Final = 50
MAX_QUERY_CHARACTERS: Final = 500
MAX_DESCRIPTION_CHARACTERS: Final = 400
_EMPTY: Final = CanonicalJson("{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """The functions of one turn; `asks_person` adds those that only guided mode has.

    What `permits` says no to is not offered; it is still found by its name, so that whoever calls
    it is told by the host why it does not run.
    """

    host: ToolHost
    config: ToolSearchConfig
    asks_person: bool
    permits: Callable[[ToolSpec], bool] | None = None

    @property
    def deferred(self) -> bool:
        """True when the MCP tools are reached by search instead of being listed."""
        return self.config.enabled or self.asks_person

    def offered(self) -> Sequence[ToolSpec]:
        """Return the tools that may be used, by alias."""
        return _kept(self.host.tools(), self.permits)

    def functions(self) -> tuple[FunctionSpec, ...]:
        """Return what the model is offered in the next request."""
        asking = functions.ASKING_FUNCTIONS if self.asks_person else ()
        if not self.deferred:
            return functions.direct_functions(offerable(self.offered()))
        if not self.offered() and not self.asks_person:
            return ()
        return (*functions.TOOL_FUNCTIONS, *asking)

    def plan(self, calls: Sequence[FunctionCall]) -> tuple[Plan, ...]:
        """Return the steps of a reply's calls, at least one for each call, in order."""
        plans: list[Plan] = []
        for call in calls:
            steps = self._plan_call(call)
            if len(plans) + len(steps) > MAX_STEPS_PER_ROUND:
                steps = (_answered(call, _error(call.name, _TOO_MANY)),)
            plans.extend(steps)
        return tuple(plans)

    def find_spec(self, server: str, tool: str) -> ToolSpec | None:
        """Find a registered tool by its server and its own name."""
        found = (spec for spec in self.host.tools() if (spec.server, spec.name) == (server, tool))
        return next(found, None)

    def find_offered(self, name: str) -> ToolSpec | None:
        """Find a tool that may be used, as the host finds it."""
        spec = self.host.find(name)
        return None if spec is None else next(iter(_kept((spec,), self.permits)), None)

    def _plan_call(self, call: FunctionCall) -> tuple[Plan, ...]:
        if call.problem:
            text = f"The arguments were not a JSON object: {call.problem}. Nothing was called."
            return (_answered(call, _error(call.name, text)),)
        arguments = cast("Mapping[str, object]", json.loads(call.arguments))
        match call.name:
            case functions.SEARCH:
                return (_answered(call, self._search(arguments)),)
            case functions.DESCRIBE:
                return (_answered(call, self._describe(arguments)),)
            case functions.CALL:
                return self._plan_batch(call, arguments)
            case functions.CHOICE | functions.ARGUMENTS if self.asks_person:
                return (_core_step(call),)
            case _:
                return (self._plan_tool(call, call.name, call.arguments),)

    def _plan_batch(self, call: FunctionCall, arguments: Mapping[str, object]) -> tuple[Plan, ...]:
        batch = list_in(arguments.get("calls"))
        if not batch:
            text = 'Give "calls": [{"name": …, "arguments": {…}}], with at least one call.'
            return (_answered(call, _error(call.name, text)),)
        if len(batch) > functions.MAX_CALLS:
            text = f"At most {functions.MAX_CALLS} calls at a time. Nothing was called."
            return (_answered(call, _error(call.name, text)),)
        return tuple(self._plan_item(call, item) for item in batch)

    def _plan_item(self, call: FunctionCall, item: object) -> Plan:
        entry = object_in(item) or {}
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            return _answered(call, _error("", 'Each call needs the "name" of a tool.'))
        arguments = _object_of(entry.get("arguments", {}))
        if arguments is None:
            text = f'The "arguments" of {name} must be a JSON object. It was not called.'
            return _answered(call, _error(name, text))
        return self._plan_tool(call, name, arguments)

    def _plan_tool(self, call: FunctionCall, name: str, arguments: CanonicalJson) -> Plan:
        spec = self.host.find(name)
        if spec is None:
            return _answered(call, _error(name, self._unknown(name)))
        return Plan(
            call_id=call.id,
            server=spec.server,
            tool=spec.name,
            tool_def_sha=spec.definition_sha,
            arguments=arguments,
            repeatable=spec.repeatable,
        )

    def _unknown(self, name: str) -> str:
        if self.asks_person:
            return f"There is no tool {name}. /tools lists them."
        if self.deferred:
            return f"There is no tool {name}. Find the right name with {functions.SEARCH}."
        return f"There is no tool {name}."

    def _search(self, arguments: Mapping[str, object]) -> Answer:
        queries = _texts(arguments.get("queries"))
        if not queries:
            return _error(functions.SEARCH, 'Give "queries": a list of texts.')
        limit = _bounded(arguments.get("limit"))
        results = [
            {"query": query, "tools": [_brief(hit.spec) for hit in self._hits(query, limit)]}
            for query in queries[: functions.MAX_QUERIES]
        ]
        connecting = [
            status.name for status in self.host.servers() if status.state in _NOT_LISTED_YET
        ]
        return _found(functions.SEARCH, {"results": results, "connecting": connecting})

    def _hits(self, query: str, limit: int) -> Sequence[ToolHit]:
        permits, query = self.permits, query[:MAX_QUERY_CHARACTERS]
        if permits is None:
            return self.host.search(query, limit=limit)
        # What may not be used must not take the places of what may.
        hits = self.host.search(query, limit=max(limit, len(self.host.tools())))
        return [hit for hit in hits if permits(hit.spec)][:limit]

    def _describe(self, arguments: Mapping[str, object]) -> Answer:
        names = _texts(arguments.get("names"))
        if not names:
            return _error(functions.DESCRIBE, 'Give "names": a list of tool names.')
        asked = names[: functions.MAX_NAMES]
        found = [(name, self.find_offered(name)) for name in asked]
        return _found(
            functions.DESCRIBE,
            {
                "tools": [_full(spec) for _, spec in found if spec],
                "unknown": [name for name, spec in found if not spec],
            },
        )


def _kept(
    specs: Sequence[ToolSpec], permits: Callable[[ToolSpec], bool] | None
) -> Sequence[ToolSpec]:
    return specs if permits is None else tuple(spec for spec in specs if permits(spec))


def joined(call: FunctionCall, steps: Sequence[Step]) -> FunctionAnswer:
    """Return the answer to a call, made of the answers of its steps."""
    answers = [step.answer for step in steps if step.answer]
    failed = all(answer.state is not CallState.OK for answer in answers)
    if len(answers) == 1:
        return FunctionAnswer(id=call.id, name=call.name, text=answers[0].text, failed=failed)
    parts = [
        {"name": answer.name, "state": answer.state.value, "text": answer.text}
        for answer in answers
    ]
    text = json.dumps(parts, ensure_ascii=False)
    return FunctionAnswer(id=call.id, name=call.name, text=text, failed=failed)


_TOO_MANY: Final = f"More than {MAX_STEPS_PER_ROUND} calls in one reply. This one was not made."
_NOT_LISTED_YET: Final = frozenset({ServerState.CONNECTING, ServerState.RECYCLING})


def _core_step(call: FunctionCall) -> Plan:
    return Plan(
        call_id=call.id,
        server="",
        tool=call.name,
        tool_def_sha="",
        arguments=call.arguments,
        repeatable=True,
    )


def _answered(call: FunctionCall, answer: Answer) -> Plan:
    return Plan(
        call_id=call.id,
        server="",
        tool=answer.name or call.name,
        tool_def_sha="",
        arguments=_EMPTY if call.problem else call.arguments,
        repeatable=True,
        answer=answer,
    )


def _error(name: str, text: str) -> Answer:
    return Answer(name=name, state=CallState.ERROR, text=text)


def _found(name: str, value: Mapping[str, object]) -> Answer:
    return Answer(name=name, state=CallState.OK, text=json.dumps(value, ensure_ascii=False))


def _brief(spec: ToolSpec) -> Mapping[str, object]:
    return {
        "name": spec.alias,
        "server": spec.server,
        "title": spec.title,
        "description": shorten(spec.description, MAX_DESCRIPTION_CHARACTERS),
    }


def _full(spec: ToolSpec) -> Mapping[str, object]:
    return {
        "name": spec.alias,
        "description": spec.description,
        "parameters": spec.input_schema,
        "read_only": spec.read_only,
    }


def _texts(value: object) -> list[str]:
    """Read a list of texts; models write one text for a list of one."""
    return [item for item in list_in(value) or [value] if isinstance(item, str) and item.strip()]


def _bounded(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return functions.DEFAULT_RESULTS
    return min(max(value, 1), functions.MAX_RESULTS)


def _object_of(value: object) -> CanonicalJson | None:
    """Read arguments; models write the object as a text of JSON at times."""
    try:
        read = object_in(parse_json(value) if isinstance(value, str) else value)
        return None if read is None else canonical(dict(read))
    except NotCanonical:
        return None
