"""Small pictures: PNG files that browsers can decode, and headers of the other formats."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 64, height: int = 64, colour: tuple[int, int, int] = (20, 90, 140)) -> bytes:
    """A whole PNG in one colour."""
    rows = (b"\0" + bytes(colour) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    )


def png_header(width: int, height: int) -> bytes:
    """The header of a PNG of any size, without what it announces."""
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def jpeg(width: int = 64, height: int = 48, *, marker: int = 0xC0) -> bytes:
    """The header of a JPEG: two application segments, padding, then its frame."""
    frame = struct.pack(">BBHBHHB", 0xFF, marker, 17, 8, height, width, 3) + bytes(9)
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    exif = b"\xff\xe1" + struct.pack(">H", 8) + b"\xff\xc0\x00\x00\x00\x00"
    return b"\xff\xd8" + app + exif + b"\xff" + frame


def webp(width: int = 64, height: int = 32, *, kind: bytes = b"VP8X") -> bytes:
    """The header of a WebP: extended, lossless or lossy."""
    bodies = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(5),
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }
    body = bodies[kind]
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
