"""Studio: the settings of each chatbot next to a live preview, and its installation code. For owners.

The preview shows unsaved settings. Conversations in the preview are tests and appear in no list and no figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http.response import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.access.tokens import test_ticket
from apps.console.base import page
from apps.console.installs import installs_of
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.studio import model_setup, personality_form, visitor_forms
from apps.console.pages.studio.forms import FOLDED, GROUPS, DeploymentForm, NewDeploymentForm, initial_of
from apps.console.pages.studio.model_forms import PROVIDERS, ModelForm
from apps.console.pages.studio.personality_form import PersonalityForm
from apps.console.pages.studio.visitor_forms import VisitorFeaturesForm
from apps.persona.queries import state_of
from apps.releases.queries import main_release
from apps.suggestions.queries import preference_of, preferences_of
from apps.suggestions.services import preferences
from apps.tenants import first_run
from apps.tenants.enums import PictureKind, Role
from apps.tenants.models import Deployment
from apps.tenants.pictures import MOST_BYTES, remove_picture, store_picture
from apps.tenants.provider_keys import remove_provider_key, server_addresses, store_provider_key
from apps.tenants.queries import deployment_by_id, models_without_key
from apps.tenants.services import change_deployment
from apps.visitors import offers
from apps.visitors.chatbots import create_chatbot
from apps.widgets.snippets import builders, is_inline, policy_lines, snippet
from apps.widgets.views import loader_integrity
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import LANGUAGES
from kernel.tenancy import tenant_scope
from llm.models import GROUNDED

# Groups of settings that come before the groups of visitor features.
_GROUPS_BEFORE_FEATURES = 3


@require_safe
@staff_view(Role.OWNER)
def listing(request: StaffRequest) -> HttpResponseBase:
    return _listing(request, NewDeploymentForm())


@require_POST
@staff_view(Role.OWNER)
def new(request: StaffRequest) -> HttpResponseBase:
    form = NewDeploymentForm(request.POST)
    if not form.is_valid():
        return _listing(request, form, status=422)
    deployment = create_chatbot(**form.cleaned_data, actor=request.member.user.actor)
    return redirect("console-studio", deployment.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def studio(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    place = deployment_by_id(deployment_id)
    if request.method != "POST":
        return _studio(request, place)
    form, features = DeploymentForm(request.POST, theme=place.theme), VisitorFeaturesForm(request.POST, place=place)
    personality = PersonalityForm(request.POST, state=state_of(place.pk))
    if not all([form.is_valid(), features.is_valid(), personality.is_valid()]):
        return _studio(request, place, form, features, personality, status=422)
    change_deployment(place, actor=request.member.user.actor, **form.values)
    personality.save(place, actor=request.member.user.actor)
    offers.change(place, actor=request.member.user.actor, **features.features)
    offers.change_form(place, features.question_values, actor=request.member.user.actor)
    return redirect("console-studio", place.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def turn(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    """Turn the chatbot on, or off after a confirmation."""
    place = deployment_by_id(deployment_id)
    if request.method == "POST":
        change_deployment(place, actor=request.member.user.actor, enabled=request.POST.get("enabled") == "1")
        return redirect("console-studio", place.pk)
    return page(request, "console/studio_turn.html", at="studio", place=place)


@require_POST
@staff_view(Role.OWNER)
def save_picture(request: StaffRequest, deployment_id: UUID, kind: str) -> HttpResponseBase:
    """Store an uploaded logo or avatar; a refused one is named beside its field."""
    place, picture_kind, file = deployment_by_id(deployment_id), _picture_kind(kind), request.FILES.get("picture")
    try:
        if file is None:
            raise SilasError(ErrorCode.PICTURE_KIND)
        store_picture(place, picture_kind, file.read(MOST_BYTES + 1), actor=request.member.user.actor)
    except SilasError as refusal:
        return _studio(request, place, status=422, refused_picture=(picture_kind, refusal.message))
    return redirect(f"{reverse('console-studio', args=[place.pk])}#pictures")


@require_POST
@staff_view(Role.OWNER)
def drop_picture(request: StaffRequest, deployment_id: UUID, kind: str) -> HttpResponseBase:
    place = deployment_by_id(deployment_id)
    remove_picture(place, _picture_kind(kind), actor=request.member.user.actor)
    return redirect(f"{reverse('console-studio', args=[place.pk])}#pictures")


def _picture_kind(text: str) -> PictureKind:
    if text not in PictureKind.values:
        raise NotFound()
    return PictureKind(text)


@sensitive_post_parameters("key")
@require_POST
@staff_view(Role.OWNER, scoped=False)
def save_key(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    """Save a provider key after testing it, outside of any scope."""
    with tenant_scope(request.member.tenant):
        place = deployment_by_id(deployment_id)
    form = ModelForm({**request.POST.dict(), "kind": "provider"})
    tested = model_setup.try_form(form, place.keys)
    with tenant_scope(request.member.tenant):
        if tested is None:
            return _studio(request, place, status=422 if form.errors else 200, keys=form).render()
        typed = {name: form.cleaned_data[name] for name in ("key", "address")}
        store_provider_key(place, model=form.model_id, **typed, actor=request.member.user.actor)
        messages.success(request, model_setup.cost_of(form.model_id, tested))
    return redirect("console-studio", place.pk)


@require_POST
@staff_view(Role.OWNER)
def remove_key(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    place = deployment_by_id(deployment_id)
    remove_provider_key(place, provider=request.POST.get("provider", ""), actor=request.member.user.actor)
    return redirect("console-studio", place.pk)


@require_POST
@staff_view(Role.OWNER)
def turn_off_preference(request: StaffRequest, deployment_id: UUID, preference_id: UUID) -> HttpResponseBase:
    """Turn a preference off: the chatbot forgets it at once."""
    preference = preference_of(deployment_by_id(deployment_id).pk, preference_id)
    preferences.dismiss(preference.pk, user=request.member.user)
    return redirect("console-studio", deployment_id)


@require_safe
@staff_view(Role.OWNER)
def install(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    place, address = deployment_by_id(deployment_id), request.build_absolute_uri("/")
    installs = installs_of(place)
    if installs.are_shown_by(request):
        return HttpResponse(status=204)
    code = snippet(address, place)
    return page(
        request,
        "console/studio_install.html",
        at="studio",
        place=place,
        snippet=code,
        pinned=snippet(address, place, integrity=loader_integrity()),
        integrity=loader_integrity(),
        policy=policy_lines(address),
        builders=builders(code, inline=is_inline(place)),
        inline=is_inline(place),
        installs=installs,
    )


def _listing(request: StaffRequest, form: NewDeploymentForm, *, status: int = 200) -> HttpResponseBase:
    rows = list(Deployment.objects.order_by("created_at"))
    unfinished = first_run.unfinished()
    return page(
        request, "console/studio_list.html", at="studio", status=status, rows=rows, form=form, unfinished=unfinished
    )


def _studio(
    request: StaffRequest,
    place: Deployment,
    form: DeploymentForm | None = None,
    features: VisitorFeaturesForm | None = None,
    personality: PersonalityForm | None = None,
    *,
    status: int = 200,
    keys: ModelForm | None = None,
    refused_picture: tuple[PictureKind, str] | None = None,
) -> TemplateResponse:
    form = form or DeploymentForm(initial=initial_of(place), theme=place.theme)
    if features is None:
        initial = visitor_forms.initial_of(offers.offers_of(place.pk), offers.questions_of(place.pk))
        features = VisitorFeaturesForm(place=place, initial=initial)
    personality = personality or PersonalityForm(state=state_of(place.pk))
    servers = server_addresses(place)
    return page(
        request,
        "console/studio.html",
        at="studio",
        status=status,
        place=place,
        release=main_release(place.pk),
        wrong=bool(form.errors or features.errors or personality.errors),
        looks=_groups(form, GROUPS[:_GROUPS_BEFORE_FEATURES]),
        personality=_groups(personality, personality_form.GROUPS),
        features=_groups(features, visitor_forms.GROUPS),
        questions=features.questions(),
        pictures=_pictures(place, refused_picture),
        has_questions=features.has_questions,
        rest=_groups(form, GROUPS[_GROUPS_BEFORE_FEATURES:]),
        languages=LANGUAGES,
        speaks=next(iter(place.languages), "en"),
        keys=keys or ModelForm(),
        kept=[(name, dict(PROVIDERS).get(name, name), servers.get(name, "")) for name in sorted(place.sealed_keys)],
        keyless=models_without_key(place),
        builtin=GROUNDED,
        preferences=preferences_of(place.pk),
        ticket=test_ticket(place.public_key),
    )


def _pictures(place: Deployment, refused: tuple[PictureKind, str] | None) -> list[dict[str, object]]:
    """Return the pictures for the template, with why one was refused."""
    shown = {
        PictureKind.LOGO: (place.logo, gettext("At the top of the chat, up to 28 pixels high")),
        PictureKind.AVATAR: (place.avatar, gettext("Beside the chatbot's messages, as a circle")),
    }
    return [
        {
            "kind": kind.value,
            "label": kind.label,
            "picture": picture,
            "hint": hint,
            "problem": refused[1] if refused and refused[0] == kind else "",
        }
        for kind, (picture, hint) in shown.items()
    ]


def _groups(form: Form, groups: Iterable[tuple[str | Promise, tuple[str, ...]]]) -> list[dict[str, object]]:
    """Return the groups of a form for the template; some can be collapsed."""
    titled = [(title, [form[name] for name in names]) for title, names in groups]
    return [
        {
            "title": title,
            "fields": fields,
            "folds": fields[0].name in FOLDED,
            "open": any(field.errors for field in fields),
        }
        for title, fields in titled
    ]
