"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.skills import drafts, publishers, views

urlpatterns = [
    path("skills/", views.listing, name="console-skills"),
    path("skills/add/", views.add, name="console-skill-add"),
    path("skills/ships/", views.add_shipped, name="console-skill-shipped"),
    path("skills/packages/<uuid:package_id>/", views.package, name="console-skill-package"),
    path("skills/packages/<uuid:package_id>/trust/", views.trust, name="console-skill-package-trust"),
    path("skills/packages/<uuid:package_id>/refuse/", views.refuse, name="console-skill-package-refuse"),
    path("skills/publishers/", publishers.publishers, name="console-publishers"),
    path("skills/publishers/pin/", publishers.pin, name="console-publisher-pin"),
    path("skills/publishers/<uuid:publisher_id>/remove/", publishers.remove, name="console-publisher-remove"),
    path("skills/versions/<uuid:version_id>/package/", views.export, name="console-skill-export"),
    path("skills/drafts/new/", drafts.new, name="console-draft-new"),
    path("skills/drafts/<uuid:draft_id>/", drafts.draft, name="console-draft"),
    path("skills/drafts/<uuid:draft_id>/words/", drafts.revise, name="console-draft-revise"),
    path("skills/drafts/<uuid:draft_id>/file/", drafts.rewrite, name="console-draft-rewrite"),
    path("skills/drafts/<uuid:draft_id>/try/", drafts.try_out, name="console-draft-try"),
    path("skills/drafts/<uuid:draft_id>/propose/", drafts.propose, name="console-draft-propose"),
    path("skills/drafts/<uuid:draft_id>/delete/", drafts.delete, name="console-draft-delete"),
    path("skills/of/<slug:name>/", views.skill, name="console-skill"),
    path("skills/of/<slug:name>/compare/", views.compare, name="console-skill-compare"),
    path("skills/of/<slug:name>/disable/", views.disable, name="console-skill-disable"),
    path("skills/of/<slug:name>/roll-back/", views.roll_back, name="console-skill-roll-back"),
    path("skills/of/<slug:name>/purge/", views.purge, name="console-skill-purge"),
]
