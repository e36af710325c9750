"""Unpackers that were taken over, for `test_archives`."""

from __future__ import annotations

import base64
import json
from typing import Any


def unpack(data: bytes, **named: Any) -> tuple[Any, bytes]:
    said = json.loads(data)
    return said["answer"], base64.b64decode(said["blob"])
