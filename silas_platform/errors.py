"""Turn errors into responses: one JSON shape for the API, plain text for people (contract interfaces).

An unavailable database or Redis is answered with 503 `unavailable` and `Retry-After`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.defaults import page_not_found
from redis.exceptions import RedisError
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

RETRY_AFTER_SECONDS = 5
PROBLEM = "application/problem+json"
_AWAY = (OperationalError, InterfaceError, RedisError)
_log = logging.getLogger(__name__)


class SilasErrorMiddleware:
    """Answer a `SilasError` of a view, and an unavailable database or Redis; other errors are left to Django."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, _AWAY):
            error = _unavailable(error)
        if not isinstance(error, SilasError):
            return None
        if _is_for_programs(request):
            return _problem_response(error)
        plain = "text/plain; charset=utf-8"
        return HttpResponse(error.message, status=error.status, content_type=plain, headers=_headers(error))


def unknown_address(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an address that no view has: programs get the API's shape, people a page."""
    if _is_for_programs(request):
        return _problem_response(SilasError(ErrorCode.NOT_FOUND))
    return page_not_found(request, exception)


def _is_for_programs(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/secrets/", "/mcp/"))


def _problem_response(error: SilasError) -> JsonResponse:
    return JsonResponse(_problem(error), status=error.status, headers=_headers(error), content_type=PROBLEM)


def api_exception(error: Exception, context: dict[str, object]) -> Response | None:
    """DRF's handler: every JSON error has a code, a message and extra."""
    if isinstance(error, _AWAY):
        error = _unavailable(error)
    if isinstance(error, PermissionDenied):
        error = SilasError(ErrorCode.FORBIDDEN_ROLE, gettext("You don't have access to this."))
    if isinstance(error, RequestDataTooBig):
        error = SilasError(ErrorCode.TOO_LARGE, gettext("The request body is too large."))
    if isinstance(error, SilasError):
        return Response(_problem(error), status=error.status, headers=_headers(error), content_type=PROBLEM)
    response = exception_handler(error, context)
    if response is None:
        return None
    code, message = ErrorCode.NOT_FOUND, gettext(ErrorCode.NOT_FOUND.text)
    extra: dict[str, object] = {}
    if isinstance(error, ValidationError):
        code, message = ErrorCode.INVALID, gettext("Some fields are missing or invalid.")
        extra = {"fields": error.get_full_details()}
    elif isinstance(error, APIException):
        code, message = ErrorCode(error.default_code), str(error.detail)
    response.data = _problem(SilasError(code, message, extra=extra, status=response.status_code))
    response.content_type = PROBLEM
    return response


def _problem(error: SilasError) -> dict[str, object]:
    """The error as problem details (RFC 9457), with our own member `error` beside them."""
    title = HTTPStatus(error.status).phrase
    code = str(error.code)
    # Both shapes: clients have read `error` from the beginning, and the API only grows. Negotiating by `Accept` would
    # leave it to proxies, which drop the header, what a program sees.
    problem = {"type": f"urn:silas:error:{code}", "title": title, "status": error.status, "detail": error.message}
    return {**problem, "code": code, **error.as_json()}


def _unavailable(error: Exception) -> SilasError:
    _log.warning("backing_service_away error=%s", type(error).__name__, exc_info=error)
    message = gettext("This isn't possible right now. Please try again in a moment.")
    return SilasError(ErrorCode.UNAVAILABLE, message, extra={"retry_after": RETRY_AFTER_SECONDS})


def _headers(error: SilasError) -> dict[str, str]:
    later = error.extra.get("retry_after") if error.status in (409, 429, 503) else None
    return {} if later is None else {"Retry-After": str(later)}
