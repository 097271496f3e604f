"""What the turn loop tells the agent log: one line per model call and per tool call."""

from typing import Protocol


class AgentLog(Protocol):
    """Where the lines go (`gateway.telemetry.agent_log`); `conversation` is a session key."""

    def model_call(
        self,
        *,
        conversation: object,
        model: str,
        ms: float,
        outcome: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        error: str = "",
    ) -> None: ...

    def tool_call(
        self,
        *,
        conversation: object,
        server: str,
        tool: str,
        ms: float,
        outcome: str,
        error: str = "",
    ) -> None: ...
