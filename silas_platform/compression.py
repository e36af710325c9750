"""Which answers travel compressed? Pages and scripts that a browser got, and nothing else: most of the wait of a phone
is for a page's size.

A secret that is shown once is the answer to a press, so no such answer is compressed; nor is the API's. What a page
repeats of what somebody typed could tell a listener by its length what stands beside it (BREACH): the token of a form
is masked anew each time, and Django adds up to 100 random bytes to each answer.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_KINDS = ("text/html", "text/javascript")


class CompressionMiddleware(GZipMiddleware):
    """Django's, for the kinds above. Static files were compressed when they were collected."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.get("Content-Type", "")
        if request.method != "GET" or response.streaming or not kind.startswith(_KINDS):
            return response
        return super().process_response(request, response)
