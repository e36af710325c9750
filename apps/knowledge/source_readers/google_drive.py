"""Read a folder of Google Drive with everything below it (Drive API v3); documents are exported as Markdown.

`location` is the id of the folder. The account's address is `https://www.googleapis.com`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from urllib.parse import quote

from apps.knowledge.parsing import ProblemCode
from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.http_client import ApiClient, objects, text_of
from apps.knowledge.source_readers.port import (
    MAX_BYTES,
    SUFFIXES,
    TOO_LARGE,
    UNSUPPORTED,
    Content,
    Entry,
    EntryFailed,
    media_type_of,
)

LOCATION = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
_FILES = "/drive/v3/files"
_FIELDS = "nextPageToken,files(id,name,mimeType,modifiedTime,md5Checksum,size,webViewLink)"
_GOOGLE = "application/vnd.google-apps."
_EXPORTS = {_GOOGLE + "document": "text/markdown", _GOOGLE + "presentation": "text/plain"}
_FOLDERS = 200


class GoogleDriveReader:
    def __init__(self, account: SourceAccount, location: str) -> None:
        self._client, self._root = ApiClient(account), location

    def entries(self) -> Iterator[Entry]:
        # A folder that is not there lists as an empty one, so it is asked for first.
        if self._client.json(f"{_FILES}/{self._root}", {"fields": "id,trashed", "supportsAllDrives": "true"}) is None:
            raise http_client.missing()
        waiting, seen = deque([self._root]), {self._root}
        while waiting:
            for item in self._children(waiting.popleft()):
                file_id, kind = text_of(item, "id"), text_of(item, "mimeType")
                if kind != _GOOGLE + "folder":
                    yield _entry(item, file_id, kind)
                elif LOCATION.match(file_id) and file_id not in seen:
                    if len(seen) >= _FOLDERS:
                        raise http_client.too_many()
                    seen.add(file_id)
                    waiting.append(file_id)

    def read(self, entry: Entry) -> Content | None:
        exported = _EXPORTS.get(entry.media_type)
        media_type = exported or entry.media_type
        if media_type not in SUFFIXES:
            raise EntryFailed(UNSUPPORTED, ProblemCode.UNSUPPORTED)
        path = f"{_FILES}/{quote(entry.id, safe='')}"
        if exported:
            answer = self._client.get(f"{path}/export", {"mimeType": exported})
        else:
            answer = self._client.get(path, {"alt": "media", "supportsAllDrives": "true"})
        if answer.status != 200:
            return None
        if len(answer.body) > MAX_BYTES:
            raise EntryFailed(TOO_LARGE, ProblemCode.TOO_LARGE)
        return Content(answer.body, media_type)

    def is_deleted(self, entry_id: str) -> bool:
        return True

    def _children(self, folder: str) -> Iterator[dict[str, object]]:
        query: dict[str, str | int] = {
            "q": f"'{folder}' in parents and trashed = false",
            "fields": _FIELDS,
            "pageSize": 100,
            "supportsAllDrives": "true",
            "includeItemsFromAllDrives": "true",
        }
        for _ in http_client.each_page():
            answer = self._client.json(_FILES, query)
            if answer is None:
                raise http_client.missing()
            yield from objects(answer, "files")
            token = text_of(answer, "nextPageToken")
            if not token:
                return
            query["pageToken"] = token


def _entry(item: dict[str, object], file_id: str, kind: str) -> Entry:
    name = text_of(item, "name")
    version = text_of(item, "md5Checksum") or text_of(item, "modifiedTime")
    # Google's own formats keep their type; a file is what its name says, as everywhere.
    media_type = kind if kind.startswith(_GOOGLE) else media_type_of(name)
    return Entry(file_id, version, name, text_of(item, "webViewLink"), media_type)
