"""What does a browser need that has the console installed? Its service worker, which is the same for everybody and
holds no data, so it does not ask who is there."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe


@require_safe
@cache_control(no_cache=True)
def service_worker(request: HttpRequest) -> HttpResponse:
    """Served from the console's own folder, because that is how far a worker reaches."""
    response = render(request, "console/sw.js", content_type="text/javascript; charset=utf-8")
    response["Service-Worker-Allowed"] = reverse("console")
    return response
