"""What deployments offer their visitors, to edit, and consents and ratings, to read only, in the administration."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import ReadOnlyAdmin
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.visitors.models import Consent, FormQuestion, ProactiveMessage, Rating, VisitorOffers
from apps.visitors.offers import problems_of, question_problems


class VisitorOffersForm(TenantRowForm):
    def _post_clean(self) -> None:
        super()._post_clean()
        for field, problem in problems_of(self.instance).items():
            if field in self.fields and field not in self.errors:
                self.add_error(field, problem)


@admin.register(VisitorOffers)
class VisitorOffersAdmin(TenantRowAdmin):
    """One row a deployment; without one nothing is offered beside talking."""

    form = VisitorOffersForm
    list_display = ("deployment", "pictures", "pdfs", "consent_version", "conversations", "transcripts", "rating")
    list_select_related: ClassVar = ["deployment", "tenant"]
    fieldsets: ClassVar = [
        (None, {"fields": ("deployment", "conversations", "transcripts", "read_receipts", "rating")}),
        (gettext_lazy("Files"), {"fields": ("pictures", "pdfs", "texts", "office", "file_megabytes", "files_each")}),
        (
            gettext_lazy("Consent before the first word"),
            {"fields": ("consent_text", "consent_link", "consent_version")},
        ),
    ]


class FormQuestionForm(TenantRowForm):
    def _post_clean(self) -> None:
        super()._post_clean()
        problems = {} if self.errors else question_problems(self.instance)
        for field, problem in problems.items():
            self.add_error(field if field in self.fields else None, problem)


@admin.register(FormQuestion)
class FormQuestionAdmin(TenantRowAdmin):
    """What is asked before the first word."""

    form = FormQuestionForm
    list_display = ("label", "deployment", "order", "kind", "required")
    list_filter = ("deployment",)
    list_select_related: ClassVar = ["deployment", "tenant"]
    fields = ("deployment", "order", "kind", "label", "required", "choices")


@admin.register(Consent)
class ConsentAdmin(ReadOnlyAdmin):
    list_display = ("given_at", "session_id", "version")
    list_filter = ("version",)
    ordering = ("-given_at",)


@admin.register(Rating)
class RatingAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "session_id", "scale", "score")
    list_filter = ("score",)
    ordering = ("-created_at",)


@admin.register(ProactiveMessage)
class ProactiveMessageAdmin(ReadOnlyAdmin):
    list_display = ("text", "deployment", "page", "audience", "is_active", "answered_count")
    list_filter = ("deployment", "audience", "is_active")
    list_select_related: ClassVar = ["deployment"]
    search_fields = ("text", "page")
