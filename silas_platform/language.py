"""Answer each request in the language of its reader.

In the console and the administration that is the language a member has chosen; without a choice, and everywhere else,
the first language of the browser that we have.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation.trans_real import parse_accept_lang_header
from redis.exceptions import RedisError

from kernel.language import LANGUAGES, MEMBER_LANGUAGES, choose_language

_FOR_MEMBERS = ("/console/", "/admin/", "/approve/")


class LanguageMiddleware:
    """Activate the reader's language for one request."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        for_members = request.path.startswith(_FOR_MEMBERS)
        known = MEMBER_LANGUAGES if for_members else LANGUAGES
        chosen = _chosen_by_member(request) if for_members else ""
        language = choose_language(chosen, *_of_browser(request), known=known)
        with translation.override(language):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language",))
        return response


def _chosen_by_member(request: HttpRequest) -> str:
    try:
        return str(getattr(request.user, "language", ""))
    except (OperationalError, InterfaceError, RedisError):
        # The view asks again, and its failure is answered with 503.
        return ""


def _of_browser(request: HttpRequest) -> list[str]:
    """The language tags of the browser, the most wanted first."""
    return [tag for tag, _ in parse_accept_lang_header(request.META.get("HTTP_ACCEPT_LANGUAGE", "").lower())]
