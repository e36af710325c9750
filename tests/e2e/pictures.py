"""Pictures of pages: made small for the documents (256 colours), and compared in coarse grey.

Reads what Chromium and this module write and nothing else: eight bits, red, green and blue, not interlaced.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_SIGN = b"\x89PNG\r\n\x1a\n"
_MOST, _COMMONEST = 256, 128
SQUARE = 8
_VISIBLE = 12
_Bytes = NDArray[np.uint8]


def in_few_colours(png: bytes) -> bytes:
    """The same picture with a palette."""
    picture = pixels(png)
    height, width, _ = picture.shape
    packed = picture.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    colours, place, number = np.unique(packed.ravel(), return_inverse=True, return_counts=True)
    kept = _chosen(_parted(colours), number)
    nearest = _nearest(_parted(colours), kept)
    rows = np.zeros((height, width + 1), dtype=np.uint8)
    rows[:, 1:] = nearest[place].reshape(height, width)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    drawn = zlib.compress(rows.tobytes(), 9)
    chunks = ((b"IHDR", head), (b"PLTE", kept.tobytes()), (b"IDAT", drawn), (b"IEND", b""))
    return _SIGN + b"".join(_chunk(name, content) for name, content in chunks)


def _parted(colours: NDArray[np.uint32]) -> _Bytes:
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.uint8)


def _chosen(colours: _Bytes, number: NDArray[np.intp]) -> _Bytes:
    """The commonest, and then each time the one that is farthest from all chosen: a small mark keeps its colour."""
    order = np.argsort(number)[::-1]
    chosen = list(order[:_COMMONEST])
    far = _apart(colours, colours[chosen]).min(axis=1)
    while len(chosen) < min(_MOST, len(colours)):
        chosen.append(far.argmax())
        far = np.minimum(far, _apart(colours, colours[chosen[-1:]])[:, 0])
    return colours[chosen]


def _apart(colours: _Bytes, others: _Bytes) -> NDArray[np.int32]:
    """How far each of the colours is from each of the others, squared."""
    return ((colours[:, None, :].astype(np.int32) - others[None, :, :].astype(np.int32)) ** 2).sum(axis=2)


def _nearest(colours: _Bytes, kept: _Bytes) -> _Bytes:
    """For each colour the place of the nearest that was kept."""
    return _apart(colours, kept).argmin(axis=1).astype(np.uint8)


def coarse_grey(png: bytes) -> _Bytes:
    """The brightness of each square of `SQUARE` pixels, 0 to 255: what is left of letters is how dark a line is."""
    picture = pixels(png)
    height, width = (side // SQUARE * SQUARE for side in picture.shape[:2])
    squares = picture[:height, :width].reshape(height // SQUARE, SQUARE, width // SQUARE, SQUARE, 3)
    grey: _Bytes = squares.mean(axis=(1, 3, 4)).round().astype(np.uint8)
    return grey


def grey_png(grey: _Bytes) -> bytes:
    """A picture of such brightnesses, which `pixels` reads."""
    height, width = grey.shape
    rows = np.zeros((height, width * 3 + 1), dtype=np.uint8)
    rows[:, 1:] = np.repeat(grey, 3, axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return _SIGN + b"".join(_chunk(name, content) for name, content in chunks)


def share_that_differs(grey: _Bytes, other: _Bytes) -> float:
    """The share of squares that are visibly darker or brighter, 0 to 1; 1 if the pictures have different sizes."""
    if grey.shape != other.shape:
        return 1.0
    return float((np.abs(grey.astype(np.int16) - other) > _VISIBLE).mean())


def pixels(png: bytes) -> _Bytes:
    """Height, width and three colours."""
    chunks = dict[bytes, bytes]()
    for name, content in _chunks(png):
        chunks[name] = chunks.get(name, b"") + content
    width, height, depth, kind, *_, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    assert kind == 2
    assert interlaced == 0
    raw = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, width * 3 + 1)
    rows = np.zeros((height, width, 3), dtype=np.uint8)
    before = np.zeros((width, 3), dtype=np.uint8)
    for number, line in enumerate(raw):
        before = rows[number] = _unfiltered(int(line[0]), line[1:].reshape(width, 3), before)
    return rows


def _unfiltered(kind: int, line: _Bytes, above: _Bytes) -> _Bytes:
    """One line of a PNG as it was before it was told by its differences (PNG specification, 9.2)."""
    if kind == 0:
        return line
    if kind == 1:
        return line.cumsum(axis=0, dtype=np.uint8)
    if kind == 2:
        return line + above
    return np.array(list(_one_by_one(kind, line.tolist(), above.tolist())), dtype=np.uint8)


def _one_by_one(kind: int, line: list[list[int]], above: list[list[int]]) -> Iterator[list[int]]:
    left, corner = [0, 0, 0], [0, 0, 0]
    for pixel, up in zip(line, above, strict=True):
        guess = _paeth if kind == 4 else _average
        left = [(value + guess(left[i], up[i], corner[i])) & 255 for i, value in enumerate(pixel)]
        corner = up
        yield left


def _average(left: int, up: int, corner: int) -> int:
    return (left + up) // 2


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    apart = abs(guess - left), abs(guess - up), abs(guess - corner)
    return (left, up, corner)[apart.index(min(apart))]


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGN)
    while at < len(png):
        size = int.from_bytes(png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
