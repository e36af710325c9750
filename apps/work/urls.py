"""URLs of work in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.work import api, interrupts_api

_ITEMS = "api/v1/work-items"

urlpatterns = [
    path("api/v1/cards/<uuid:card_id>/edit", api.EditCard.as_view(), name="api-card-edit"),
    path(_ITEMS, api.WorkItems.as_view(), name="api-work-items"),
    path(f"{_ITEMS}/<uuid:item_id>", api.OneWorkItem.as_view(), name="api-work-item"),
    path(f"{_ITEMS}/<uuid:item_id>/cancel", api.CancelWorkItem.as_view(), name="api-work-item-cancel"),
    path(f"{_ITEMS}/<uuid:item_id>/resume", api.ResumeWorkItem.as_view(), name="api-work-item-resume"),
    path("api/v1/cards/<uuid:card_id>/interrupt", interrupts_api.CardInterrupt.as_view(), name="api-card-interrupt"),
    path(
        "api/v1/cards/<uuid:card_id>/interrupt-response",
        interrupts_api.CardInterruptResponse.as_view(),
        name="api-card-interrupt-response",
    ),
]
