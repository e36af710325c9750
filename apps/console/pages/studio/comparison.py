"""Compare the saved style of a chatbot with the one in the form, by one question. Nothing is saved."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import async_to_sync
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.studio.personality_form import PersonalityForm
from apps.persona.enums import Axis, Preset
from apps.persona.queries import baseline_of, state_of
from apps.sessions import style_preview
from apps.sessions.style_preview import Style
from apps.tenants.enums import Role
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope

LONGEST_PERSONA = 4000


@require_POST
@staff_view(Role.OWNER, scoped=False)
def compare(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    """Outside of any scope: models are asked."""
    question = request.POST.get("question", "")[: style_preview.LONGEST_QUESTION].replace("\0", " ").strip()
    with tenant_scope(request.member.tenant):
        place = deployment_by_id(deployment_id)
        state, saved = state_of(place.pk), baseline_of(place.pk).value
    form = PersonalityForm(request.POST, state=state)
    persona = request.POST.get("persona", place.persona)[:LONGEST_PERSONA].replace("\0", " ")
    compared = None
    if form.is_valid() and question:
        styles = (Style(place.persona, saved), Style(persona, form.axes()))
        compared = async_to_sync(style_preview.compare)(request.member.tenant.pk, place.pk, question, styles)
    names = ["preset", *(f"axis_{axis}" for axis in Axis)]
    with tenant_scope(request.member.tenant):
        return page(
            request,
            "console/studio_compare.html",
            at="studio",
            status=422 if form.errors else 200,
            place=place,
            question=question,
            compared=compared,
            kept=[(name, request.POST.get(name, "")) for name in names] + [("persona", persona)],
            styles=[_name(state.active_preset if state else Preset.OFF), _name(request.POST.get("preset", ""))],
        ).render()


def _name(preset: str) -> str:
    return str(Preset(preset).label) if preset in Preset.values else ""
