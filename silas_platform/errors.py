"""How does a refusal reach the caller? One JSON shape for the API, one plain page for people (contract interfaces)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from kernel.errors import SilasError


class SilasErrorMiddleware:
    """Turns a `SilasError` raised by a view into its answer; everything else is Django's."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, SilasError):
            return None
        if request.path.startswith(("/api/", "/secrets/", "/mcp/")):
            return JsonResponse(error.as_json(), status=error.status)
        return HttpResponse(error.message, status=error.status, content_type="text/plain; charset=utf-8")


def api_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's handler: every JSON error has a code, a message and extra."""
    if isinstance(error, SilasError):
        return Response(error.as_json(), status=error.status)
    response = exception_handler(error, context)
    if response is None:
        return None
    known = SilasError(_code(error), _message(error), extra=_extra(error), status=response.status_code)
    response.data = known.as_json()
    return response


def _code(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "invalid"
    return str(error.default_code) if isinstance(error, APIException) else "not_found"


def _message(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "Some fields are missing or wrong."
    return str(error.detail) if isinstance(error, APIException) else "There is no such thing."


def _extra(error: Exception) -> dict[str, Any]:
    return {"fields": error.get_full_details()} if isinstance(error, ValidationError) else {}
