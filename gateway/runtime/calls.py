"""Works on one open step of a turn: asks a person, or calls a server's tool through the host."""

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from gateway.domain.canonical import CanonicalJson
from gateway.domain.deadline import Deadline
from gateway.domain.form import Form, FormAction, FormAnswer, Option
from gateway.domain.ids import QuestionId
from gateway.domain.operations.turns import Claim, StepState
from gateway.domain.schema_form import Unaskable, form_of
from gateway.domain.text import shorten
from gateway.domain.tools import CallState, ToolCall, ToolResult, ToolSpec
from gateway.ports import Approval, Clock, FormRequest, Media, SamplingRequest
from gateway.runtime import functions
from gateway.runtime.approvals import ApprovalBroker
from gateway.runtime.journal import Journal
from gateway.runtime.journal_text import Answer
from gateway.runtime.loose_json import list_in, object_in
from gateway.runtime.narration import AgentLog
from gateway.runtime.outgoing import keep_tool_files
from gateway.runtime.steps import Step, first_line
from gateway.runtime.toolbox import Toolbox
from gateway.telemetry.faults import FaultPoint, reach

MAX_LABEL_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CallApprover:
    """Implements `Approver` for one step: the conversation is asked, the journal is written."""

    call: ToolCall
    step: Step
    journal: Journal
    broker: ApprovalBroker
    deadline: Deadline

    async def approve(self, spec: ToolSpec) -> Approval:
        """Ask whether the call may run; a decision made before a restart still holds."""
        approval = await self.broker.approve(self.call, spec, deadline=self.deadline)
        await reach(FaultPoint.APPROVAL_DECIDED)
        return approval

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        """Write down that the call goes out; return the arguments of the row."""
        arguments = await self.journal.sent(self.step, question)
        await reach(FaultPoint.TOOL_STARTED)
        return arguments

    async def elicit(self, request: FormRequest) -> FormAnswer:
        """Put a server's form to the person."""
        return await self.broker.elicit(self.call, request, deadline=self.deadline)

    async def sample(self, request: SamplingRequest) -> Approval:
        """Ask whether a server may use our model."""
        return await self.broker.sample(self.call, request, deadline=self.deadline)

    async def tell(self, text: str) -> None:
        """Say something about the call in its conversation."""
        await self.broker.tell(self.call, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """Runs the steps of one turn, one after another but for servers that allow otherwise."""

    claim: Claim
    toolbox: Toolbox
    journal: Journal
    broker: ApprovalBroker
    clock: Clock
    log: AgentLog
    media: Media

    async def run_all(self, steps: Sequence[Step], *, deadline: Deadline) -> None:
        """Bring open steps to their ends, in order: one may need what the one before it did.

        Neighbours whose servers take calls side by side run together.
        """
        for together, group in itertools.groupby(steps, key=self._runs_beside_others):
            neighbours = tuple(group)
            if together and len(neighbours) > 1:
                await self._run_together(neighbours, deadline)
                continue
            for step in neighbours:
                await self._run(step, deadline)

    def _runs_beside_others(self, step: Step) -> bool:
        spec = self.toolbox.find_spec(step.server, step.tool) if step.server else None
        return spec is not None and spec.parallel

    async def _run_together(self, steps: Sequence[Step], deadline: Deadline) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for step in steps:
                    tasks.create_task(self._run(step, deadline), name=f"step:{step.n}")
        except BaseExceptionGroup as group:
            # A turn knows single errors; the first one ended the others.
            raise group.exceptions[0] from None

    async def _run(self, step: Step, deadline: Deadline) -> None:
        if step.server:
            answer = await self._call(step, deadline)
        else:
            answer = await self._ask(step, deadline)
        await self.journal.done(step, answer)
        await reach(FaultPoint.TOOL_RECORDED)

    async def _call(self, step: Step, deadline: Deadline) -> Answer:
        spec = self.toolbox.find_spec(step.server, step.tool)
        if spec is None:
            return _gone(step)
        call = self._tool_call(step, spec.alias)
        approver = CallApprover(
            call=call, step=step, journal=self.journal, broker=self.broker, deadline=deadline
        )
        result = await self.toolbox.host.call(call, approver)
        await reach(FaultPoint.TOOL_RETURNED)
        self.log.tool_call(
            conversation=self.claim.place.session_key,
            server=spec.server,
            tool=spec.name,
            ms=result.ms,
            outcome=result.state.value,
            error="" if result.state is CallState.OK else first_line(result.text),
        )
        files, notes = await keep_tool_files(result.attachments, media=self.media)
        text = "\n".join(part for part in (answer_text(result), *notes) if part)
        return Answer(name=spec.alias, state=result.state, text=text, files=files)

    async def _ask(self, step: Step, deadline: Deadline) -> Answer:
        arguments = cast("Mapping[str, object]", json.loads(step.arguments))
        match step.tool:
            case functions.CHOICE:
                return await self._choose(step, arguments, deadline)
            case functions.ARGUMENTS:
                return await self._fill(step, arguments, deadline)
            case _:
                return _gone(step)

    async def _choose(
        self, step: Step, arguments: Mapping[str, object], deadline: Deadline
    ) -> Answer:
        options = _options(arguments.get("options"))
        if not options:
            text = 'Give "options": [{"value": …, "label": …}], with at least one.'
            return Answer(name=step.tool, state=CallState.ERROR, text=text)
        picked = await self.broker.choose(
            self._tool_call(step, step.tool),
            message=str(arguments.get("message") or ""),
            options=options,
            deadline=deadline,
        )
        reason = "" if picked is not None else "nothing was chosen"
        return _json_answer(step, {"picked": picked, "reason": reason})

    async def _fill(
        self, step: Step, arguments: Mapping[str, object], deadline: Deadline
    ) -> Answer:
        name = str(arguments.get("tool") or "")
        spec = self.toolbox.find_offered(name)
        if spec is None:
            return Answer(
                name=step.tool, state=CallState.ERROR, text=f"There is no tool {name or '(none)'}."
            )
        form = form_of(spec.input_schema, message=spec.description or spec.title, lenient=True)
        if isinstance(form, Unaskable):
            return _json_answer(step, {"action": "decline", "reason": form.reason()})
        answer = await self.broker.fill(
            self._tool_call(step, step.tool),
            form,
            tool=spec.name,
            server=spec.server,
            deadline=deadline,
        )
        return _json_answer(step, _filled(form, answer))

    def _tool_call(self, step: Step, alias: str) -> ToolCall:
        return ToolCall(
            id=f"{self.claim.turn}:{step.n}",
            alias=alias,
            arguments=step.arguments,
            place=self.claim.place,
            requester=self.claim.requester,
            session=self.claim.session,
            turn=self.claim.turn,
            step=step.n,
        )


def answer_text(result: ToolResult) -> str:
    """Return everything of a result the model must see: text, structured part, metadata."""
    parts = [result.text] if result.text else []
    if result.structured is not None and not _says(result.text, result.structured):
        parts.append(f"Structured result: {_json(result.structured)}")
    if result.meta:
        parts.append(f"_meta: {_json(result.meta)}")
    return "\n\n".join(parts)


def _says(text: str, structured: Mapping[str, object]) -> bool:
    """Servers repeat the structured part as text; once is enough."""
    try:
        return bool(json.loads(text) == dict(structured))
    except (ValueError, RecursionError):
        return False


def _gone(step: Step) -> Answer:
    where = f" of server {step.server}" if step.server else ""
    if step.state is StepState.SENT:
        text = f"{step.tool}{where} is not available any more; the outcome of the call is unknown."
        return Answer(name=step.tool, state=CallState.UNKNOWN, text=text)
    text = f"{step.tool}{where} is not available any more. It was not called."
    return Answer(name=step.tool, state=CallState.REFUSED, text=text)


def _filled(form: Form, answer: FormAnswer) -> Mapping[str, object]:
    if answer.action is not FormAction.ACCEPT:
        return {"action": answer.action.value, "reason": answer.reason}
    content = answer.content or {}
    if not form.root:
        return {"action": "accept", "arguments": dict(content)}
    value = object_in(content.get(form.fields[0].name))
    if value is None:
        return {"action": "decline", "reason": "the arguments were not a JSON object"}
    return {"action": "accept", "arguments": dict(value)}


def _options(value: object) -> tuple[Option, ...]:
    found: list[Option] = []
    for item in list_in(value):
        entry = object_in(item) or {}
        name = entry.get("value")
        if isinstance(name, str) and name:
            label = str(entry.get("label") or name)
            found.append(Option(value=name, label=shorten(label, MAX_LABEL_CHARACTERS)))
    return tuple(found)


def _json_answer(step: Step, value: Mapping[str, object]) -> Answer:
    return Answer(name=step.tool, state=CallState.OK, text=_json(value))


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(dict(value), ensure_ascii=False, default=str)
