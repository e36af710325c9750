"""Serve what a visitor's browser loads: loader, frame document, appearance, demo site, landing page.

The frame document is the same page for every key, known or not; only its Content-Security-Policy differs.
"""

from __future__ import annotations

import functools
import hashlib
import re
from base64 import b64encode
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import condition, require_safe

from apps.releases.served import live_settings
from apps.tenants import install_pings
from apps.tenants.hours import team_status
from apps.tenants.pictures import picture_at
from apps.widgets import queries, rules, snippets
from kernel.clock import now
from kernel.errors import NotFound
from kernel.language import LANGUAGES
from kernel.tenancy import tenant_scope

_STATIC = Path(__file__).parent / "static"
_FRAME = _STATIC / "widgets/frame"


def first_modules() -> tuple[str, ...]:
    """The modules that the frame needs until the first message can be sent, without the language: what `main.js`
    imports at once, and what those import."""
    found: dict[str, None] = {}
    waiting = ["main.js"]
    for name in waiting:
        imported = re.findall(r'^import .* from "\./([\w/]+\.js)";$', (_FRAME / name).read_text(), re.MULTILINE)
        waiting += [other for other in imported if other not in waiting]
        found |= dict.fromkeys(imported)
    return tuple(sorted(found))


_MODULES = first_modules()


@functools.cache
def _loader_source() -> bytes:
    return (_STATIC / "widgets/loader.js").read_bytes()


def _loader_etag(request: HttpRequest) -> str:
    return f'"{hashlib.sha256(_loader_source()).hexdigest()[:32]}"'


def loader_integrity() -> str:
    """The Subresource Integrity value with which a page may pin the embed script."""
    return f"sha384-{b64encode(hashlib.sha384(_loader_source()).digest()).decode()}"


@require_safe
@condition(etag_func=_loader_etag)
def loader(request: HttpRequest) -> HttpResponse:
    """Serve the embed script, at a URL that never changes; any website may load it."""
    headers = {
        "Cache-Control": "public, max-age=300",
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return HttpResponse(_loader_source(), content_type="text/javascript; charset=utf-8", headers=headers)


@require_safe
@xframe_options_exempt
def frame(request: HttpRequest, key: str) -> HttpResponse:
    """Serve the iframe document. Without a deployment, X-Frame-Options covers browsers without frame-ancestors."""
    deployment = queries.open_deployment(key)
    listed = None if deployment is None else deployment.allowed_origins
    if deployment is not None and "test" not in request.GET:  # a preview in the console is no install
        install_pings.record_ping(deployment, request.headers.get("Referer", ""))
    modules = (*_MODULES, f"locales/{_language()}.js")
    response = render(request, "widgets/frame.html", {"modules": [f"widgets/frame/{name}" for name in modules]})
    response["Content-Security-Policy"] = rules.frame_policy(listed, host=request.get_host())
    response["Cache-Control"] = "no-cache"
    response["Referrer-Policy"] = "no-referrer"
    if deployment is None:
        response["X-Frame-Options"] = "DENY"
    return response


def _language() -> str:
    """The browser's language, whose texts are probably the frame's; the page may ask for another."""
    spoken = str(get_language() or "").partition("-")[0]
    return spoken if spoken in LANGUAGES else "en"


@require_safe
def appearance(request: HttpRequest, key: str) -> JsonResponse:
    """Return what the widget shows before there is a session: title, theme, pictures, greeting, suggestions,
    languages and when the team is back."""
    deployment = queries.open_deployment(key)
    if deployment is None:
        return JsonResponse(NotFound().as_json(), status=404)
    with tenant_scope(deployment.tenant_id):
        settings = live_settings(deployment)
    data = {
        "title": deployment.title,
        "theme": deployment.theme,
        "logo": deployment.logo,
        "avatar": deployment.avatar,
        "greeting": settings.greeting,
        "suggestions": settings.suggestions,
        "languages": settings.languages,
        "team": team_status(deployment.schedule, now()),
    }
    return JsonResponse(data, headers={"Cache-Control": "no-cache"})


@require_safe
def picture(request: HttpRequest, key: str, kind: str, file: str) -> HttpResponse:
    """Serve a chatbot's logo or avatar under its current name, which contains its hash. The bytes are an owner's upload
    and never decoded here: browsers take them as the media type of their header, and nothing in them runs. Staff see
    those of a disabled chatbot too."""
    deployment = queries.deployment_with_key(key)
    if deployment is None:
        raise Http404
    with tenant_scope(deployment.tenant_id):
        found = picture_at(deployment, kind, file)
    if found is None:
        raise Http404
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(bytes(found.content), content_type=found.media_type, headers=headers)


@require_safe
def demo(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """A sample customer page with the widget on it; demo mode only."""
    deployment = queries.demo_deployment(tenant_slug) if settings.DEMO else None
    if deployment is None:
        raise Http404
    look = snippets.first_look(deployment)
    return render(request, "widgets/demo.html", {"deployment": deployment, "tenant": deployment.tenant, "look": look})


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """Links to the console, the administration and the API; to the demo sites only in demo mode."""
    return render(request, "widgets/landing.html", {"tenants": queries.demo_tenants() if settings.DEMO else []})
