"""URLs of skills in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.skills.api import drafts, packages, skills

_DRAFT = "api/v1/skill-drafts/<uuid:draft_id>"

urlpatterns = [
    path("api/v1/skills", skills.Skills.as_view(), name="api-skills"),
    path("api/v1/skills/<slug:name>", skills.OneSkill.as_view(), name="api-skill"),
    path("api/v1/skills/<slug:name>/diff", skills.Comparing.as_view(), name="api-skill-diff"),
    path("api/v1/bundled-skills", skills.BundledSkills.as_view(), name="api-bundled-skills"),
    path("api/v1/skills/<slug:name>/disable", skills.Disabling.as_view(), name="api-skill-disable"),
    path("api/v1/skills/<slug:name>/roll-back", skills.RollingBack.as_view(), name="api-skill-roll-back"),
    path("api/v1/skills/<slug:name>/purge", skills.Purging.as_view(), name="api-skill-purge"),
    path(
        "api/v1/skills/<slug:name>/versions/<int:number>/package", packages.Exporting.as_view(), name="api-skill-export"
    ),
    path("api/v1/skill-packages", packages.Packages.as_view(), name="api-skill-packages"),
    path(
        "api/v1/skill-packages/<uuid:package_id>/refuse",
        packages.RefusingPackage.as_view(),
        name="api-skill-package-refuse",
    ),
    path("api/v1/skill-publishers", packages.Publishers.as_view(), name="api-skill-publishers"),
    path("api/v1/skill-publishers/<uuid:publisher_id>", packages.OnePublisher.as_view(), name="api-skill-publisher"),
    path("api/v1/skill-drafts", drafts.Drafts.as_view(), name="api-skill-drafts"),
    path(_DRAFT, drafts.OneDraft.as_view(), name="api-skill-draft"),
    path(f"{_DRAFT}/revisions", drafts.Revising.as_view(), name="api-skill-draft-revise"),
    path(f"{_DRAFT}/try", drafts.Trying.as_view(), name="api-skill-draft-try"),
    path(f"{_DRAFT}/submit", drafts.Submitting.as_view(), name="api-skill-draft-submit"),
]
