"""The service worker and the offline page of the installed console.

Both hold no data and are the same for everyone, so neither requires a login.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe


@require_safe
@cache_control(no_cache=True)
def service_worker(request: HttpRequest) -> HttpResponse:
    """Serve the worker from the console's own path, because a worker controls only paths below its own."""
    response = render(request, "console/sw.js", content_type="text/javascript; charset=utf-8")
    response["Service-Worker-Allowed"] = reverse("console")
    return response


@require_safe
@cache_control(public=True, max_age=3600)
def offline(request: HttpRequest) -> HttpResponse:
    return render(request, "console/offline.html")
