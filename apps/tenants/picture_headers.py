"""Read the format and size of a picture from its header. Pure.

Nothing is decoded and nothing after the header is read, so a hostile picture reaches no decoder of ours. Browsers
decode it as the media type found here (the answer forbids them to guess another).
"""

from __future__ import annotations

from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = len(_PNG) + 25  # the IHDR chunk with its length, name and checksum
# Start-of-frame markers of JPEG: 0xC0 to 0xCF without those of tables and of extensions.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_WITHOUT_LENGTH = frozenset({0x00, 0x01, *range(0xD0, 0xDA)})
_JPEG_SCAN = 0xDA


@dataclass(frozen=True)
class PictureHeader:
    """`ending` is the one of the file's name, without a dot."""

    media_type: str
    ending: str
    width: int
    height: int


def picture_header(content: bytes) -> PictureHeader | None:
    """The header of a PNG, JPEG or WebP; None for anything else, and for a header that is not whole."""
    if content.startswith(_PNG):
        return _header("image/png", "png", _png_size(content))
    if content.startswith(b"\xff\xd8\xff"):
        return _header("image/jpeg", "jpg", _jpeg_size(content))
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return _header("image/webp", "webp", _webp_size(content))
    return None


def _header(media_type: str, ending: str, size: tuple[int, int] | None) -> PictureHeader | None:
    return PictureHeader(media_type, ending, *size) if size else None


def _png_size(content: bytes) -> tuple[int, int] | None:
    if len(content) < _PNG_HEADER or content[8:16] != b"\x00\x00\x00\x0dIHDR":
        return None
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """The size in the first frame header; segments before it are skipped by their lengths."""
    at = 2
    while at + 4 <= len(content):
        marker = content[at + 1]
        if content[at] != 0xFF or marker in _JPEG_WITHOUT_LENGTH or marker == _JPEG_SCAN:
            return None
        if marker == 0xFF:  # padding before a marker
            at += 1
            continue
        length = int.from_bytes(content[at + 2 : at + 4])
        if marker in _JPEG_FRAMES:
            frame = content[at + 5 : at + 9]
            is_whole = length >= 8 and len(content) >= at + 2 + length
            return (int.from_bytes(frame[2:]), int.from_bytes(frame[:2])) if is_whole else None
        if length < 2:
            return None
        at += 2 + length
    return None


def _webp_size(content: bytes) -> tuple[int, int] | None:
    """The size in the first chunk: lossy (`VP8 `), lossless (`VP8L`) or extended (`VP8X`)."""
    chunk, body = content[12:16], content[20:30]
    if chunk == b"VP8 " and len(body) == 10 and body[3:6] == b"\x9d\x01\x2a":
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    if chunk == b"VP8L" and len(body) >= 5 and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X" and len(body) == 10:
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    return None
