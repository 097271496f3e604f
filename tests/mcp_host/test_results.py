import base64

from gateway.domain.message import AttachmentKind
from mcp_host.results import MAX_FILE_BYTES, MAX_FILES, MAX_TEXT, read_result
from mcp_host.secrets import without_secrets
from mcp_host.server_config import ServerConfig
from tests.support.requirement import requirement


def image(data: str, **more: object) -> dict[str, object]:
    return {"type": "image", "mimeType": "image/png", "data": data, **more}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_files_come_with_what_is_in_them() -> None:
    result = read_result(
        {
            "content": [
                image(encoded(b"pixels"), title="chart"),
                {"type": "audio", "mimeType": "audio/mpeg", "data": encoded(b"sound")},
            ]
        },
        call="1",
    )

    assert [(file.kind, file.name, file.data, file.for_chat) for file in result.attachments] == [
        (AttachmentKind.IMAGE, "chart", b"pixels", True),
        (AttachmentKind.AUDIO, "", b"sound", True),
    ]
    assert result.text == "[image chart image/png, 6 bytes]\n[audio audio/mpeg, 5 bytes]"


def test_a_file_that_cannot_be_read_is_named_and_the_rest_stays() -> None:
    result = read_result(
        {"content": [image("not base64!"), {"type": "text", "text": "fine"}]}, call="1"
    )

    assert result.attachments == ()
    assert result.text == "[image image/png: it cannot be read]\nfine"


@requirement("threat.s21")
def test_a_file_over_the_limit_is_named_and_never_unpacked() -> None:
    size = (MAX_FILE_BYTES // 3 + 1) * 4
    result = read_result({"content": [image("A" * size)]}, call="1")

    assert result.attachments == ()
    assert "left out" in result.text


@requirement("threat.s21")
def test_of_very_many_files_some_are_taken_and_all_are_named() -> None:
    result = read_result({"content": [image(encoded(b"x"))] * (MAX_FILES + 5)}, call="1")

    assert len(result.attachments) == MAX_FILES
    assert result.text.count("[image") == MAX_FILES + 5


def test_the_rest_of_a_long_text_is_a_file_for_the_model_alone() -> None:
    text = "é" * (MAX_TEXT + 7)
    result = read_result({"content": [{"type": "text", "text": text}]}, call="1")

    (rest,) = result.attachments
    assert (rest.name, rest.for_chat) == ("result.txt", False)
    assert rest.data.decode() == text
    assert len(result.text) < MAX_TEXT + 100


def test_a_secret_is_masked_in_the_rest_of_a_long_text_too() -> None:
    config = ServerConfig.model_validate({"command": "x", "env": {"TOKEN": "variable-secret"}})
    text = "x" * MAX_TEXT + " variable-secret"
    result = read_result({"content": [{"type": "text", "text": text}]}, call="1")

    (rest,) = without_secrets(result, config).attachments

    assert b"variable-secret" not in rest.data
