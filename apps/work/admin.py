"""Admin pages of the work room: read-only items, attempts and verification runs; review policies; goals by file."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import ReadOnlyAdmin
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.work.confidence import threshold_errors
from apps.work.enums import WorkItemType
from apps.work.models import Attempt, GoalFile, ReviewPolicy, VerificationRun, WorkItem
from apps.work.services import check_goal, install_goal
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

MAX_BYTES = 256 * 1024


@admin.register(WorkItem)
class WorkItemAdmin(ReadOnlyAdmin):
    list_display = ("title", "type", "status", "reason", "attempts_made", "created_at")
    list_filter = ("status", "type")
    search_fields = ("title",)
    ordering = ("-created_at",)


class GoalFileForm(TenantRowForm):
    """Form that imports a goal. Errors carry the code and line that `import_goal` reports."""

    file = forms.FileField(required=False, help_text=gettext_lazy("A markdown file"))
    markdown = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 30, "cols": 100}),
        help_text=gettext_lazy(
            "Or its text. It governs the deployment from the next turn on and replaces the previous goal"
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "deployment" in self.fields:
            self.fields["deployment"].required = True

    def clean(self) -> dict[str, object]:
        cleaned = super().clean()
        if deployment := cleaned.get("deployment"):
            self._check(cleaned, deployment)
        return cleaned

    def _check(self, cleaned: dict[str, Any], deployment: Any) -> None:
        """Validate the goal for this deployment."""
        try:
            cleaned["goal"] = _text_of(cleaned)
            with tenant_scope(deployment.tenant_id):
                check_goal(cleaned["goal"], deployment=deployment)
        except SilasError as refused:
            self.add_error("file" if cleaned.get("file") else "markdown", f"{refused.code}: {refused.message}")


def _text_of(cleaned: dict[str, Any]) -> str:
    """Return the goal's text. Raises `SilasError` if it is no text, too long, or missing."""
    file = cleaned.get("file")
    if file is None:
        text = str(cleaned.get("markdown") or "")
    # Before it is read: an upload's size is known, and its content need not be in memory.
    elif file.size > MAX_BYTES:
        raise SilasError(
            ErrorCode.GOAL_TOO_LONG, _("a goal file may have at most %(number)s KiB.") % {"number": MAX_BYTES // 1024}
        )
    else:
        try:
            text = file.read().decode("utf-8")
        except UnicodeDecodeError:
            raise SilasError(ErrorCode.GOAL_NO_TEXT) from None
    if not text.strip():
        raise SilasError(ErrorCode.GOAL_MISSING)
    return text.replace("\r\n", "\n")


@admin.register(GoalFile)
class GoalFileAdmin(TenantRowAdmin):
    """Goals of deployments; a new one is imported from a file and replaces the previous one."""

    form = GoalFileForm
    list_display = ("title", "deployment", "status", "created_at")
    list_select_related: ClassVar = ["tenant", "deployment"]
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(type=WorkItemType.GOAL)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("title", "deployment", "status", "created_at") if obj else ("deployment", "file", "markdown")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: GoalFile, form: ModelForm[GoalFile], change: bool) -> None:
        """Install the goal through its service; the row shown is the installed goal."""
        deployment, actor = form.cleaned_data["deployment"], f"user:{request.user.pk}"
        with tenant_scope(deployment.tenant_id):
            installed = install_goal(form.cleaned_data["goal"], deployment=deployment, requested_by=actor)
        # The service has stored the row; Django would otherwise insert it a second time.
        obj.pk, obj.title, obj._state.adding = installed.goal.pk, installed.goal.title, False
        if not installed.changed:
            messages.info(request, _("This goal is already active. Nothing was changed."))


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ("work_item", "number", "status", "started_at", "ended_at")
    list_select_related: ClassVar = ["work_item"]
    list_filter = ("status",)
    ordering = ("-started_at",)


@admin.register(VerificationRun)
class VerificationRunAdmin(ReadOnlyAdmin):
    list_display = ("attempt", "all_passed", "ran_at")
    list_select_related: ClassVar = ["attempt"]
    list_filter = ("all_passed",)
    ordering = ("-ran_at",)


class ReviewPolicyForm(TenantRowForm):
    class Meta:
        labels: ClassVar = {
            "default_size": gettext_lazy("Items in a batch"),
            "high_min": gettext_lazy("Minimum confidence for a batch"),
            "medium_min": gettext_lazy("Minimum confidence for a draft"),
        }
        help_texts: ClassVar = {
            "deployment": gettext_lazy("One row per deployment"),
            "default_size": gettext_lazy("1 to 50. Blank: {default_size}"),
            "high_min": gettext_lazy(
                "Between 0 and 1. Blank: {high_min}. Nothing runs without approval at any confidence"
            ),
            "medium_min": gettext_lazy("Between 0 and 1. Blank: {medium_min}. Anything below comes as a question"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.help_text = field.help_text.format(**settings.BATCH_REVIEW)

    def clean(self) -> dict[str, object]:
        """Validate the values together; blank fields fall back to the settings."""
        cleaned = super().clean()
        entered = {name: cleaned.get(name) for name in settings.BATCH_REVIEW}
        effective: dict[str, Any] = {
            name: settings.BATCH_REVIEW[name] if value is None else value for name, value in entered.items()
        }
        for name, problem in threshold_errors(**effective).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(ReviewPolicy)
class ReviewPolicyAdmin(TenantRowAdmin):
    """Confidence thresholds and batch size of one deployment."""

    form = ReviewPolicyForm
    list_display = ("deployment", "default_size", "high_min", "medium_min")
    list_select_related: ClassVar = ["tenant", "deployment"]
    fields = ("deployment", "default_size", "high_min", "medium_min")
