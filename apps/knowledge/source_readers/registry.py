"""The readers by kind of source, and what a source of each kind may name as its location."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apps.knowledge.enums import SourceKind
from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers import confluence, google_drive, notion, s3, zendesk
from apps.knowledge.source_readers.port import SourceReader

# One step of a folder below the company's own; none leads upwards.
_STEP = re.compile(r"(?!\.)[^/\\\x00-\x1f\x7f]{1,100}\Z")
_MOST_STEPS = 10


@dataclass(frozen=True)
class AccountReader:
    """Opens the reader of an account, and says which locations it takes."""

    open: Callable[[SourceAccount, str], SourceReader]
    location: re.Pattern[str]


_READERS: Mapping[SourceKind, AccountReader] = {
    SourceKind.S3: AccountReader(s3.S3Reader, s3.LOCATION),
    SourceKind.NOTION: AccountReader(notion.NotionReader, notion.LOCATION),
    SourceKind.CONFLUENCE: AccountReader(confluence.ConfluenceReader, confluence.LOCATION),
    SourceKind.ZENDESK: AccountReader(zendesk.ZendeskReader, zendesk.LOCATION),
    SourceKind.GOOGLE_DRIVE: AccountReader(google_drive.GoogleDriveReader, google_drive.LOCATION),
}


def open_reader(kind: SourceKind, account: SourceAccount, location: str) -> SourceReader:
    """The reader of a source with an account."""
    return _READERS[kind].open(account, location)


def is_location(kind: SourceKind, location: str) -> bool:
    """Whether a source of this kind may name this location; a website's address is checked elsewhere."""
    if kind is SourceKind.FOLDER:
        steps = location.split("/") if location else []
        return len(steps) <= _MOST_STEPS and all(map(_STEP.match, steps))
    return bool(_READERS[kind].location.match(location))
