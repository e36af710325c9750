"""How does a JSON body become values? Whatever it holds, a broken one is the sender's fault and answered as such."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser as AnyJSONParser


class JSONParser(AnyJSONParser):
    """JSON that is nested no deeper than Python can follow."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("JSON parse error - it is nested too deeply") from None
