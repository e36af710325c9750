"""JSON parser of the API that answers every malformed body with 400."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser as AnyJSONParser


class JSONParser(AnyJSONParser):
    """Refuse JSON that is nested deeper than Python's recursion limit."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        # Any client could otherwise provoke an error 500.
        except RecursionError:
            raise ParseError("JSON parse error - it is nested too deeply") from None
