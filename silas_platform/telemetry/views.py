"""`/metrics` in the text format of Prometheus, for requests that carry `SILAS_METRICS_TOKEN`."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from silas_platform.telemetry.instruments import REGISTRY


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """This process's own counters and the installation's gauges. Without the setting there is no such page."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {settings.METRICS_TOKEN}"):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    answer = HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)
    answer["Cache-Control"] = "no-store"
    return answer
