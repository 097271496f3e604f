"""What the tools are given: checked, with numbers outside their bounds moved to the nearest one."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mcp_host.bridge.problems import Problem

MAX_CURSOR: Final = 2**63 - 1
MAX_TEXT: Final = 1_000
MAX_ATTACHMENTS: Final = 10
DECISIONS: Final = ("allow-once", "allow-session", "allow-always", "deny")


def _bounded(lowest: int, highest: int) -> BeforeValidator:
    def nearest(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return min(max(value, lowest), highest)
        return value

    return BeforeValidator(nearest)


def _whole(lowest: int, highest: int, description: str) -> Any:
    return Field(description=description, json_schema_extra={"minimum": lowest, "maximum": highest})


Text = Annotated[str, Field(max_length=MAX_TEXT)]
Limit = Annotated[int, _bounded(1, 200), _whole(1, 200, "How many at most, 1 to 200.")]
Platform = Annotated[Text | None, Field(description="Only this platform, like telegram.")]
Before = Annotated[Text | None, Field(description="`next` of the page before.")]
SessionKey = Annotated[
    Text, Field(description="Of a conversation, as conversations_list has it.", min_length=1)
]
OneSession = Annotated[Text | None, Field(description="Only events of this conversation.")]
Cursor = Annotated[
    int,
    _bounded(0, MAX_CURSOR),
    _whole(0, MAX_CURSOR, "`next_cursor` of the call before; 0 is the moment this server started."),
]
Replay = Annotated[
    bool, Field(description="With after_cursor 0: begin with everything that is kept.")
]


class Arguments(BaseModel):
    """Of one tool. What is unknown or of another type is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ConversationsList(Arguments):
    platform: Platform = None
    search: Annotated[
        Text | None, Field(description="Part of a name or of the key, in any case.")
    ] = None
    limit: Limit = 50
    before: Before = None


class ConversationGet(Arguments):
    session_key: SessionKey


class MessagesRead(Arguments):
    session_key: SessionKey
    limit: Limit = 50
    before_id: Annotated[
        Text | None, Field(description="Only messages before this one, the newest of them.")
    ] = None
    after_id: Annotated[
        Text | None, Field(description="Only messages after this one, the oldest of them.")
    ] = None


class AttachmentsFetch(Arguments):
    session_key: SessionKey
    message_id: Annotated[Text, Field(description="As messages_read has it.", min_length=1)]
    include_data: Annotated[bool, Field(description="Return the bytes too, in base64.")] = False


class EventsPoll(Arguments):
    after_cursor: Cursor = 0
    session_key: OneSession = None
    limit: Limit = 20
    replay: Replay = False


class EventsWait(Arguments):
    after_cursor: Cursor = 0
    session_key: OneSession = None
    timeout_ms: Annotated[
        int, _bounded(0, 300_000), _whole(0, 300_000, "How long to wait, at most 5 minutes.")
    ] = 30_000
    replay: Replay = False


class MessagesSend(Arguments):
    target: Annotated[
        Text,
        Field(
            description="As channels_list has it; platform alone is its home channel, "
            "platform:#name a channel by its name.",
            min_length=1,
        ),
    ]
    message: Annotated[str, Field(description="The text, as Markdown.", min_length=1)]
    attachments: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=4_096)]],
        Field(description="Paths of local files to send with it.", max_length=MAX_ATTACHMENTS),
    ] = []
    idempotency_key: Annotated[
        str | None,
        Field(
            description="The same key again sends nothing new and returns the same ids.",
            min_length=1,
            max_length=200,
        ),
    ] = None


class ChannelsList(Arguments):
    platform: Platform = None
    search: Annotated[Text | None, Field(description="Part of a name, or a chat's id.")] = None
    limit: Limit = 50
    before: Before = None


class PermissionsListOpen(Arguments):
    pass


class PermissionsRespond(Arguments):
    id: Annotated[Text, Field(description="Of an open approval, or its first letters.")]
    decision: Annotated[
        Literal["allow-once", "allow-session", "allow-always", "deny"],
        Field(description="Whether it may run: once, for the session, always, or not."),
    ]
    reason: Annotated[Text | None, Field(description="Why, for whoever asked.")] = None


T = TypeVar("T", bound=Arguments)


def parse(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return the arguments of a call; null is as good as left out.

    Raises:
        Problem: One is missing, unknown or of the wrong type, and which.
    """
    try:
        return kind.model_validate({key: item for key, item in given.items() if item is not None})
    except ValidationError as error:
        raise Problem("invalid_arguments", _sentence(error)) from error


def input_schema(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    return kind.model_json_schema(schema_generator=_ArgumentsSchema)


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "arguments"
    if first["type"] == "missing":
        return f"{name} is missing"
    if first["type"] == "extra_forbidden":
        return f"there is no argument {name[:100]}"
    return f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}"


class PlainSchema(GenerateJsonSchema):
    """Without titles: they repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave the title out."""
        del schema
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Leave out the class's name and words."""
        found = super().model_schema(schema)
        return {key: item for key, item in found.items() if key not in {"title", "description"}}

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """Leave out the class's name."""
        found = super().typed_dict_schema(schema)
        return {key: item for key, item in found.items() if key != "title"}


class _ArgumentsSchema(PlainSchema):
    """What may be left out is not said to be null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Describe what it is when it is there."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave a default out that only says that there is none."""
        if schema.get("default", "") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)
