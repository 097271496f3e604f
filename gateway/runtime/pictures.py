"""Which files are pictures that a model can be shown. Reads their first bytes and decodes nothing."""

from io import BytesIO
from typing import Final

MAX_PICTURE_BYTES: Final = 3_750_000
"""Of one picture: what services take, which count it in base64."""
MAX_PICTURE_SIDE: Final = 8_000
MAX_PICTURE_PIXELS: Final = 40_000_000

_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture_type(data: bytes) -> str:
    """Return the media type of a picture by what is in it, "" for anything a model is not shown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _BEGINNINGS if data.startswith(start)), "")


def picture_problem(data: bytes) -> str:
    """Return why a picture is not shown to a model, "" when it can be.

    Its sides are read from its head: a small file may unpack to more than a machine has.
    """
    # It brings packages that only pictures need, and no types.
    from imagesize import get  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    if len(data) > MAX_PICTURE_BYTES:
        return "it is too large to be shown"
    width, height = get(BytesIO(data))
    if width < 1 or height < 1:
        return "its size cannot be read"
    if max(width, height) > MAX_PICTURE_SIDE or width * height > MAX_PICTURE_PIXELS:
        return f"{width} x {height} pixels are too many to be shown"
    return ""
