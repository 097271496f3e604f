from dataclasses import replace
from pathlib import Path

import pytest

from adapters.terminal.markup import TerminalRenderer
from gateway.domain.delivery import DeliveryKind
from gateway.domain.files import FileState
from gateway.domain.message import Attachment, AttachmentKind
from gateway.runtime.outgoing import kind_of, parts_of
from tests.fakes.loopback import LoopbackRenderer

TEXT, FILE = DeliveryKind.TEXT, DeliveryKind.FILE
PHOTO = Attachment(
    kind=AttachmentKind.IMAGE,
    media_type="image/png",
    name="p.png",
    size=10,
    key="out-1.png",
    state=FileState.STORED,
)
NOTES = replace(PHOTO, kind=AttachmentKind.FILE, media_type="text/plain", name="n.txt")


def shape(text: str, *files: Attachment) -> list[tuple[DeliveryKind, str, list[str]]]:
    parts = parts_of(text, files, renderer=LoopbackRenderer(), where=Path)
    return [(part.kind, part.body, [str(file.kind) for file in part.files]) for part in parts]


def test_a_short_text_goes_with_the_first_file() -> None:
    assert shape("here", NOTES, NOTES) == [(FILE, "here", ["file"]), (FILE, "", ["file"])]


def test_a_text_that_is_no_caption_goes_first() -> None:
    long = "x" * 21
    assert shape(long, NOTES) == [(TEXT, long, []), (FILE, "", ["file"])]
    assert shape("", NOTES) == [(FILE, "", ["file"])]
    assert shape("just text") == [(TEXT, "just text", [])]


def test_pictures_in_a_row_are_albums_of_what_the_platform_shows_together() -> None:
    found = shape("these", *[PHOTO] * 4, NOTES, PHOTO)

    assert [files for _, _, files in found] == [["image"] * 3, ["image"], ["file"], ["image"]]


@pytest.mark.parametrize(
    "picture", [replace(PHOTO, size=1_001), replace(PHOTO, media_type="image/tiff")]
)
def test_a_picture_the_platform_does_not_show_goes_as_a_file(picture: Attachment) -> None:
    assert shape("", picture) == [(FILE, "", ["file"])]


def test_where_no_files_are_taken_people_are_told_where_they_are() -> None:
    (part,) = parts_of("here", [PHOTO], renderer=TerminalRenderer(), where=Path)

    assert part.body == "here\n\n(file p.png, 10 bytes: out-1.png)"


def test_kinds_follow_the_media_type() -> None:
    found = [str(kind_of(each)) for each in ("image/gif", "audio/ogg", "audio/mpeg", "video/mp4")]

    assert found == ["image", "voice", "audio", "video"]
    assert kind_of("application/pdf") is AttachmentKind.FILE
