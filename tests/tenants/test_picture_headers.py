"""Formats and sizes are read from headers; what is cut off, mixed or another format is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tenants.picture_headers import PictureHeader, picture_header
from tests.factories.pictures import jpeg, png, png_header, webp

HEADERS = [
    (png(40, 20), PictureHeader("image/png", "png", 40, 20)),
    (png_header(30_000, 30_000), PictureHeader("image/png", "png", 30_000, 30_000)),
    (jpeg(300, 200), PictureHeader("image/jpeg", "jpg", 300, 200)),
    (jpeg(300, 200, marker=0xC2), PictureHeader("image/jpeg", "jpg", 300, 200)),
    (webp(500, 400), PictureHeader("image/webp", "webp", 500, 400)),
    (webp(500, 400, kind=b"VP8L"), PictureHeader("image/webp", "webp", 500, 400)),
    (webp(500, 400, kind=b"VP8 "), PictureHeader("image/webp", "webp", 500, 400)),
]


@pytest.mark.parametrize(("content", "header"), HEADERS)
def test_header_says_format_and_size(content: bytes, header: PictureHeader) -> None:
    assert picture_header(content) == header


@pytest.mark.parametrize(
    "content",
    [png_header(64, 64), jpeg(), webp(), webp(kind=b"VP8 "), webp(kind=b"VP8L")[:25]],
)
def test_header_that_is_cut_off_anywhere_is_none(content: bytes) -> None:
    assert picture_header(content) is not None
    for length in range(len(content)):
        assert picture_header(content[:length]) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a" + bytes(40),
        b"<svg xmlns='http://www.w3.org/2000/svg' width='64' height='64'/>",
        b"<!doctype html><p>PNG",
        b" " + png(),
        b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x0dIDAT" + bytes(40),
        b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x0eIHDR" + bytes(40),
        jpeg(marker=0xC4),
        jpeg(marker=0xDA),
        b"\xff\xd8" + b"\xff\xe0\x00\x00" * 20,
        b"\xff\xd8" + b"\xff" * 200,
        b"RIFF\x00\x00\x00\x00WAVE" + bytes(40),
        b"RIFF\x00\x00\x00\x00WEBPALPH" + bytes(40),
        b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(40),
    ],
)
def test_anything_else_is_no_picture(content: bytes) -> None:
    assert picture_header(content) is None


@given(st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF....WEBP"]), st.binary(max_size=300))
def test_hostile_bytes_give_a_header_or_none(start: bytes, rest: bytes) -> None:
    header = picture_header(start + rest)
    assert header is None or header.width >= 0
