"""The proactive messages of a chatbot: the list, and the page of one beside what visitors see. For owners."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.tenants.enums import Role
from apps.tenants.locks import lock_deployment
from apps.tenants.queries import deployment_by_id
from apps.visitors import proactive_messages
from apps.visitors.models import ProactiveMessage
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import LANGUAGES
from kernel.unicode_safety import replace_unstorable


class ProactiveMessageForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        choices=[("", gettext_lazy("Any")), *LANGUAGES.items()],
        required=False,
        help_text=gettext_lazy("Shown only where the chat speaks this language"),
    )

    class Meta:
        model = ProactiveMessage
        fields = proactive_messages.FIELDS
        widgets = {  # noqa: RUF012  (Django reads it from the class)
            "text": forms.Textarea(attrs={"rows": 3, "data-nudge-text": ""}),
            "seconds": forms.NumberInput(attrs={"min": 0}),
        }

    @property
    def values(self) -> dict[str, Any]:
        return {
            name: replace_unstorable(value) if isinstance(value, str) else value
            for name, value in self.cleaned_data.items()
        }


@require_safe
@staff_view(Role.OWNER)
def listing(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    place = deployment_by_id(deployment_id)
    rows = proactive_messages.messages_of(place.pk)
    return page(request, "console/proactive_messages.html", at="studio", place=place, rows=rows)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def new(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    form = ProactiveMessageForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            proactive_messages.create(lock_deployment(deployment_id), actor=request.member.user.actor, **form.values)
        except SilasError as error:
            _show_refusal(form, error)
        else:
            return redirect("console-studio-messages", deployment_id)
    return _page(request, deployment_id, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def edit(request: StaffRequest, deployment_id: UUID, message_id: UUID) -> HttpResponseBase:
    row = proactive_messages.message_of(deployment_id, message_id, lock=request.method == "POST")
    if request.method != "POST":
        return _page(request, deployment_id, ProactiveMessageForm(instance=row), row)
    form = ProactiveMessageForm(request.POST)
    if form.is_valid():
        try:
            proactive_messages.change(row, actor=request.member.user.actor, **form.values)
        except SilasError as error:
            _show_refusal(form, error)
        else:
            return redirect("console-studio-messages", deployment_id)
    return _page(request, deployment_id, form, proactive_messages.message_of(deployment_id, message_id))


@require_POST
@staff_view(Role.OWNER)
def delete(request: StaffRequest, deployment_id: UUID, message_id: UUID) -> HttpResponseBase:
    row = proactive_messages.message_of(deployment_id, message_id, lock=True)
    proactive_messages.delete(row, actor=request.member.user.actor)
    return redirect("console-studio-messages", deployment_id)


def _show_refusal(form: ProactiveMessageForm, error: SilasError) -> None:
    if error.code not in (ErrorCode.INVALID_OFFERS, ErrorCode.TOO_MANY):
        raise error
    for name, problem in error.extra.get("fields", {"": str(error.args[0])}).items():
        form.add_error(name or None, problem)


def _page(
    request: StaffRequest, deployment_id: UUID, form: ProactiveMessageForm, row: ProactiveMessage | None
) -> HttpResponseBase:
    return page(
        request,
        "console/proactive_message.html",
        at="studio",
        status=422 if form.errors else 200,
        place=deployment_by_id(deployment_id),
        form=form,
        row=row,
    )
