"""Read the objects of a bucket below a prefix, at Amazon S3 or a store that speaks its interface (ListObjectsV2).

`location` is `bucket` or `bucket/prefix`. The account's address is the store's endpoint; its settings name the region
and the access key, and its secret is the key's. Requests are signed here (Signature Version 4), so that they go through
the same checked client as all others.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import re
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote, unquote_plus, urlsplit

from apps.knowledge.parsing import ProblemCode
from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.http_client import ApiClient
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
from kernel.clock import now
from kernel.unicode_safety import replace_unstorable

LOCATION = re.compile(r"\A[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\x00-\x1f\x7f]{0,400})?\Z")
# Matched, not parsed as XML, because a hostile store's entities must not be expanded here.
_LISTING = re.compile(r"<ListBucketResult[ >]")


class S3Reader:
    def __init__(self, account: SourceAccount, location: str) -> None:
        self._bucket, _, self._prefix = location.partition("/")
        region, key_id = str(account.settings.get("region") or "us-east-1"), str(account.settings.get("access_key_id"))
        secret = account.secrets.get("secret_access_key", "")

        def sign(method: str, url: str, body: bytes) -> dict[str, str]:
            return signature(method, url, body, region=region, key_id=key_id, secret=secret, moment=now())

        self._client = ApiClient(account, sign=sign)

    def entries(self) -> Iterator[Entry]:
        query = {"list-type": "2", "max-keys": "1000", "encoding-type": "url", "prefix": self._prefix}
        for _ in http_client.each_page():
            answer = self._client.get(f"/{self._bucket}?{_encoded(query)}")
            text = answer.body.decode("utf-8", "replace")
            if answer.status != 200:
                raise http_client.missing()
            if not _LISTING.search(text):
                raise http_client.unreadable()
            for found in (part.partition("</Contents>")[0] for part in text.split("<Contents>")[1:]):
                key = unquote_plus(_field(found, "Key"))
                if not key.endswith("/"):
                    version = _field(found, "ETag").strip('"')
                    yield Entry(key, version, media_type=media_type_of(key))
            if _field(text, "IsTruncated") != "true":
                return
            query["continuation-token"] = _field(text, "NextContinuationToken")

    def read(self, entry: Entry) -> Content | None:
        if entry.media_type not in SUFFIXES:
            raise EntryFailed(UNSUPPORTED, ProblemCode.UNSUPPORTED)
        answer = self._client.get(f"/{self._bucket}/{quote(entry.id, safe='/~-_.')}")
        if answer.status != 200:
            return None
        if len(answer.body) > MAX_BYTES:
            raise EntryFailed(TOO_LARGE, ProblemCode.TOO_LARGE)
        return Content(answer.body, entry.media_type)

    def is_deleted(self, entry_id: str) -> bool:
        return True


def signature(
    method: str, url: str, body: bytes, *, region: str, key_id: str, secret: str, moment: datetime
) -> dict[str, str]:
    """The headers that sign a request to S3 (AWS Signature Version 4). The URL is encoded as it is sent."""
    parts, stamp = urlsplit(url), moment.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    named = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = "\n".join((method, parts.path or "/", query, lines, named, digest))
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for word in (*scope.split("/"), to_sign):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    credential = f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={named}, Signature={key.hex()}"
    return {"x-amz-content-sha256": digest, "x-amz-date": stamp, "Authorization": credential}


def _encoded(query: dict[str, str]) -> str:
    return "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query.items())


def _field(text: str, name: str) -> str:
    found = re.search(rf"<{name}>([^<]{{0,3000}})</{name}>", text)
    return replace_unstorable(html.unescape(found[1])) if found else ""
