"""The agent log as a list of lines."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ListedLog:
    """Implements `AgentLog`."""

    lines: list[str] = field(default_factory=list[str])

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
    ) -> None:
        self.lines.append(f"model {conversation} {model} {outcome} {error}".strip())

    def tool_call(
        self,
        *,
        conversation: object,
        server: str,
        tool: str,
        ms: float,
        outcome: str,
        error: str = "",
    ) -> None:
        self.lines.append(f"tool {conversation} {server} {tool} {outcome} {error}".strip())
