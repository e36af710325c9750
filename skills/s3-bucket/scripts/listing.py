"""One listing of the bucket, signed with the key (AWS Signature Version 4)."""

import hashlib
import hmac
import time
import urllib.parse

from silas_skill.account import call, check_status, settings


def look(secret):
    """Milliseconds that the call took."""
    known, started = settings(), time.monotonic()
    bucket = urllib.parse.quote(known["bucket"], safe="-_.~")
    url = f"{known['base_url'].rstrip('/')}/{bucket}?list-type=2&max-keys=1"
    status, told, _ = call("GET", url, headers=_signed(url, secret))
    check_status(status, told)
    return int(1000 * (time.monotonic() - started))


def _signed(url, secret):
    known, parts = settings(), urllib.parse.urlsplit(url)
    stamp, digest = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), hashlib.sha256(b"").hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = "\n".join(("GET", parts.path, parts.query, lines, ";".join(headers), digest))
    scope = f"{stamp[:8]}/{known['region']}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for word in (*scope.split("/"), text):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    credential = f"{known['access_key_id']}/{scope}"
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={';'.join(sorted(headers))}, Signature={key.hex()}"
    )
    return headers
