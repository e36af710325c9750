"""Compress pages and scripts that a browser fetched with GET, and nothing else.

Secrets that are shown once are answers to POST requests, which are never compressed; nor is the API. A page that
repeats user input could reveal neighbouring secrets by its length (BREACH): CSRF tokens are masked differently each
time, and Django adds up to 100 random bytes to each response.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_KINDS = ("text/html", "text/javascript")


class CompressionMiddleware(GZipMiddleware):
    """Limit Django's compression to the kinds above. Static files are compressed when they are collected."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.get("Content-Type", "")
        # Secrets that are shown once are answers to POST requests (BREACH).
        if request.method != "GET" or response.streaming or not kind.startswith(_KINDS):
            return response
        return super().process_response(request, response)
