"""What an administrator may look at here: items, attempts and what the checks found; and what they may set: how batches
are made, and the goal that governs a deployment, by its file."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest

from apps.audit.admin import ReadOnlyAdmin
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.work.confidence import threshold_errors
from apps.work.enums import WorkItemType
from apps.work.models import Attempt, GoalFile, ReviewPolicy, VerificationRun, WorkItem
from apps.work.services import check_goal, install_goal
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

MOST_BYTES = 256 * 1024


@admin.register(WorkItem)
class WorkItemAdmin(ReadOnlyAdmin):
    list_display = ("title", "type", "status", "reason", "attempts_made", "created_at")
    list_filter = ("status", "type")
    search_fields = ("title",)
    ordering = ("-created_at",)


class GoalFileForm(TenantRowForm):
    """What is wrong with the file stands beside it, with the code and the line that `import_goal` says."""

    file = forms.FileField(required=False, help_text="A markdown file")
    markdown = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 30, "cols": 100}),
        help_text="Or its text. Saved, it governs the deployment from the next turn on; the goal before it is over",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "deployment" in self.fields:
            self.fields["deployment"].required = True

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if deployment := cleaned.get("deployment"):
            self._check(cleaned, deployment)
        return cleaned

    def _check(self, cleaned: dict[str, Any], deployment: Any) -> None:
        """Whether it could govern this deployment."""
        try:
            cleaned["goal"] = _text_of(cleaned)
            with tenant_scope(deployment.tenant_id):
                check_goal(cleaned["goal"], deployment=deployment)
        except SilasError as refused:
            self.add_error("file" if cleaned.get("file") else "markdown", f"{refused.code}: {refused.message}")


def _text_of(cleaned: dict[str, Any]) -> str:
    """Raises `SilasError` for what is no text, too much of it, or none."""
    file = cleaned.get("file")
    if file is None:
        text = str(cleaned.get("markdown") or "")
    elif file.size > MOST_BYTES:
        raise SilasError("goal_too_long", f"a goal file has {MOST_BYTES // 1024} KiB at most.")
    else:
        try:
            text = file.read().decode("utf-8")
        except UnicodeDecodeError:
            raise SilasError("goal_no_text", "this is no text in UTF-8.") from None
    if not text.strip():
        raise SilasError("goal_missing", "choose a file, or paste its text.")
    return text.replace("\r\n", "\n")


@admin.register(GoalFile)
class GoalFileAdmin(TenantRowAdmin):
    """Goals of deployments; a new one comes as a file and replaces the one before."""

    form = GoalFileForm
    list_display = ("title", "deployment", "status", "created_at")
    list_select_related: ClassVar = ["tenant", "deployment"]
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(type=WorkItemType.GOAL)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("title", "deployment", "status", "created_at") if obj else ("deployment", "file", "markdown")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: GoalFile, form: Any, change: bool) -> None:
        """Through the one service that installs goals; the row that is shown is the goal's."""
        deployment, actor = form.cleaned_data["deployment"], f"user:{request.user.pk}"
        with tenant_scope(deployment.tenant_id):
            installed = install_goal(form.cleaned_data["goal"], deployment=deployment, requested_by=actor)
        obj.pk, obj.title, obj._state.adding = installed.goal.pk, installed.goal.title, False
        if not installed.changed:
            messages.info(request, "This goal is in force already. Nothing was changed.")


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
            "default_size": "Items in a batch",
            "high_min": "Sure enough for a batch, from",
            "medium_min": "Sure enough for a draft, from",
        }
        help_texts: ClassVar = {
            "deployment": "Whose goals: one row a deployment",
            "default_size": "1 to 50. Blank: {default_size}",
            "high_min": "A share between 0 and 1. Blank: {high_min}. Nothing runs without a yes, however sure it is",
            "medium_min": "A share between 0 and 1. Blank: {medium_min}. What is less sure comes as a question",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.help_text = field.help_text.format(**settings.BATCH_REVIEW)

    def clean(self) -> dict[str, Any]:
        """What is left blank is as the house says, and both together must make sense."""
        cleaned = super().clean()
        whole = {name: cleaned.get(name) for name in settings.BATCH_REVIEW}
        meant: dict[str, Any] = {
            name: settings.BATCH_REVIEW[name] if given is None else given for name, given in whole.items()
        }
        for name, problem in threshold_errors(**meant).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(ReviewPolicy)
class ReviewPolicyAdmin(TenantRowAdmin):
    """How sure a goal must be, and how many actions one person decides together; a deployment's own numbers."""

    form = ReviewPolicyForm
    list_display = ("deployment", "default_size", "high_min", "medium_min")
    list_select_related: ClassVar = ["tenant", "deployment"]
    fields = ("deployment", "default_size", "high_min", "medium_min")
