"""The addresses of skills in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.skills import api

urlpatterns = [
    path("api/v1/skills", api.Skills.as_view(), name="api-skills"),
    path("api/v1/skills/<slug:name>", api.OneSkill.as_view(), name="api-skill"),
    path("api/v1/skills/<slug:name>/disable", api.Disabling.as_view(), name="api-skill-disable"),
    path("api/v1/skills/<slug:name>/roll-back", api.RollingBack.as_view(), name="api-skill-roll-back"),
    path("api/v1/skills/<slug:name>/purge", api.Purging.as_view(), name="api-skill-purge"),
]
