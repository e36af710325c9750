"""Documents that exhaust their reader: small to send, large or endless to read."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping

_MEGABYTE = 1 << 20


def pdf(*objects: bytes, root: int = 1) -> bytes:
    """A PDF of these objects, numbered from 1."""
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, root, start))


def stream(content: bytes, told: bytes = b"") -> bytes:
    return b"<</Length %d%b>>\nstream\n%b\nendstream" % (len(content), told, content)


def one_page_pdf(*others: bytes, page: bytes = b"") -> bytes:
    """`others` are its objects from 4 on; `page` is what else its page has."""
    tree = (b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>")
    return pdf(*tree, b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]%b>>" % page, *others)


def pdf_of_forms(depth: int = 10, times: int = 10, pages: int = 15) -> bytes:
    """Pages with one form that draws the next one ten times, and so on: a few kilobytes that are 10^10 forms. A reader
    that stops after some thousand forms of a page begins again on the next one."""
    forms = []
    for level in range(depth):
        following = 6 + level if level < depth - 1 else 5 + level
        told = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F %d 0 R>>>>" % following
        last = b"BT (laugh) Tj ET" if level == depth - 1 else b"/F Do " * times
        forms.append(stream(last, told))
    resources = b"/MediaBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>"
    numbers = [3, *range(5 + depth, 4 + depth + pages)]
    kids = b"".join(b"%d 0 R " % number for number in numbers)
    tree = b"<</Type/Pages/Kids[%b]/Count %d%b>>" % (kids, pages, resources)
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
    content = stream(b"/F Do " * times)
    return pdf(b"<</Type/Catalog/Pages 2 0 R>>", tree, page, content, *forms, *[page] * (pages - 1))


def pdf_that_swells(megabytes: int = 1000) -> bytes:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * _MEGABYTE) for _ in range(megabytes)) + packer.flush()
    packed = zlib.compress(packed, 9)
    told = b"/Filter[/FlateDecode/FlateDecode]"
    return one_page_pdf(stream(packed, told), page=b"/Contents 4 0 R")


def pdf_of_operators(count: int = 3_000_000) -> bytes:
    packed = zlib.compress(b"BT (x) Tj ET " * count, 9)
    return one_page_pdf(stream(packed, b"/Filter/FlateDecode"), page=b"/Contents 4 0 R")


def pdf_of_brackets(depth: int = 200_000) -> bytes:
    return one_page_pdf(stream(b"[" * depth), page=b"/Contents 4 0 R/Deep " + b"[" * depth + b"]" * depth)


def pdf_of_circles() -> bytes:
    """Its pages are its own children, its cross references lead back to themselves."""
    circle = pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9999999>>")
    start = circle.rindex(b"xref\n0")
    return circle.replace(b"/Root 1 0 R", b"/Root 1 0 R/Prev %d" % start)


def pdf_of_a_great_picture() -> bytes:
    told = b"/Type/XObject/Subtype/Image/Width 99999/Height 99999/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/"
    told += b"JBIG2Decode"
    page = b"/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>"
    return one_page_pdf(stream(b"/I Do"), stream(b"\x97JB2" * 100, told), page=page)


def html_tower(depth: int = 100_000) -> bytes:
    return b"<div>" * depth + b"deep"


def html_line(megabytes: int = 10) -> bytes:
    return b"<p>" + b"<b a='" + b"word &amp; " * (megabytes * 95_000)


def html_of_formatting(count: int = 60_000) -> bytes:
    """Elements that a browser opens again after each block."""
    return b"".join(b"<b><i><p>" for _ in range(count))


def laughs() -> bytes:
    """Markdown whose front matter names a list of lists of lists."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 12):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]")
    return ("---\n" + "\n".join(lines) + "\ntitle: *a11\n---\ntext").encode()


def jsonl_of_brackets(depth: int = 1_000_000) -> bytes:
    return b"[" * depth + b"\n" + b'{"text": "good"}\n'


def zip_bomb(megabytes: int = 400, *, names: tuple[str, ...] = ("a",)) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(name, "w") as part:
                for _ in range(megabytes // len(names)):
                    part.write(b"\0" * _MEGABYTE)
    return out.getvalue()


def zip_of_many(count: int = 60_000) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(count):
            archive.writestr(str(number), b"")
    return out.getvalue()


def gzip_bomb(megabytes: int = 400) -> bytes:
    return gzip.compress(b"\0" * (megabytes * _MEGABYTE), 9)


def tar_of_many(count: int = 20_000) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for number in range(count):
            archive.addfile(tarfile.TarInfo(str(number)))
    return out.getvalue()


def tar_with_a_long_name(megabytes: int = 40) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("x/" * (megabytes * _MEGABYTE // 2)))
    return out.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def zip_that_overlaps(count: int = 900) -> bytes:
    """Entries that all stand for the same bytes: each alone is small."""
    one = bytearray(zipped({"0000": b"\0" * (4 * _MEGABYTE)}))
    start = one.rindex(b"PK\x01\x02")
    end = one.rindex(b"PK\x05\x06")
    listed = b"".join(one[start:end].replace(b"0000", b"%04d" % number) for number in range(count))
    tail = bytearray(one[end:])
    struct.pack_into("<HHI", tail, 8, count, count, len(listed))
    return bytes(one[:start] + listed + tail)


def zip_that_lies(told: int = 10) -> bytes:
    """Of its file it says that it holds ten bytes."""
    raw = bytearray(zip_bomb(40))
    struct.pack_into("<I", raw, raw.rfind(b"PK\x01\x02") + 24, told)
    return bytes(raw)


def zip_with_a_password() -> bytes:
    raw = bytearray(zipped({"a": b"secret"}))
    raw[6] |= 1
    raw[raw.rfind(b"PK\x01\x02") + 8] |= 1
    return bytes(raw)


def zip_packed_by(method: int) -> bytes:
    """The library unpacks these all at once."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("a", b"\0" * (40 * _MEGABYTE))
    return out.getvalue()


def tar_of(files: Mapping[bytes, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def tar_of_a(kind: bytes) -> bytes:
    info = tarfile.TarInfo("a")
    info.type, info.linkname = kind, "/etc/passwd"
    return info.tobuf() + bytes(1024)


def tar_with_a_slow_header(digits: int = 400_000) -> bytes:
    """Attributes that `tarfile` searches from each of their digits again."""
    head = tarfile.TarInfo("pax")
    head.type, head.size = tarfile.XHDTYPE, digits
    return head.tobuf() + b"1" * digits + bytes(-digits % 512) + tar_of({b"a": b"x"})


# What `sandbox.archives` has to refuse.
ARCHIVES: dict[str, Callable[[], bytes]] = {
    "bomb.zip": zip_bomb,
    "many.zip": zip_of_many,
    "overlapping.zip": zip_that_overlaps,
    "lying.zip": zip_that_lies,
    "password.zip": zip_with_a_password,
    "bzip2.zip": lambda: zip_packed_by(zipfile.ZIP_BZIP2),
    "lzma.zip": lambda: zip_packed_by(zipfile.ZIP_LZMA),
    "cut.zip": lambda: zipped({"a": b"x" * 1000})[:-20],
    "bomb.tar.gz": gzip_bomb,
    "many.tar.gz": tar_of_many,
    "name.tar.gz": tar_with_a_long_name,
    "header.tar": tar_with_a_slow_header,
    "link.tar": lambda: tar_of_a(tarfile.SYMTYPE),
    "device.tar": lambda: tar_of_a(tarfile.CHRTYPE),
    "bzip2.tar": lambda: bz2.compress(tar_of({b"a": b"x"})),
    "nothing": lambda: b"",
    "noise": lambda: b"PK\x03\x04" + bytes(range(256)) * 4000,
}

# By a name whose ending says how it is to be read.
DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "forms.pdf": pdf_of_forms,
    "swells.pdf": lambda: pdf_that_swells(300),
    "operators.pdf": pdf_of_operators,
    "brackets.pdf": pdf_of_brackets,
    "circles.pdf": pdf_of_circles,
    "picture.pdf": pdf_of_a_great_picture,
    "polyglot.pdf": lambda: b"GIF89a" + b"\0" * 900 + pdf_of_forms(),
    "archive.pdf": lambda: zip_bomb(100),
    "tower.html": html_tower,
    "line.html": html_line,
    "formatting.html": html_of_formatting,
    "laughs.md": laughs,
    "brackets.jsonl": jsonl_of_brackets,
    "headings.md": lambda: b"# " + b" " * 5_000_000,
}
