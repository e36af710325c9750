"""The page of a decision link: a passkey shows the card, and signs the answer (ADR 124).

Public and without a login: who holds a link sees the company's name and why a link has ended, and nothing of the card
until the member's passkey has answered. Nothing is remembered between requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.cards import decision_links
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card, DecisionLink
from apps.approvals.queries import get_card
from apps.console.pages.login.reauthentication import passkey_origin
from apps.console.pages.review import presenter
from apps.console.pages.review.views import card_face
from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_of
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import tenant_scope
from kernel.timezones import get_timezone

MAX_UNKNOWN, WINDOW_SECONDS = 20, 15 * 60
View = Callable[[HttpRequest, DecisionLink], HttpResponse]
Refuse = Callable[[HttpRequest, SilasError], HttpResponse]


def _refuse_as_page(request: HttpRequest, refusal: SilasError) -> HttpResponse:
    return render(request, "console/decision_link.html", {"refusal": refusal}, status=refusal.status)


def _refuse_as_json(_request: HttpRequest, refusal: SilasError) -> HttpResponse:
    return JsonResponse(refusal.as_json(), status=refusal.status)


def link_view(refuse: Refuse) -> Callable[[View], Callable[..., HttpResponse]]:
    """Call the view with the link, inside its tenant's scope and time zone. Refusals are answered with `refuse`."""

    def decorate(view: View) -> Callable[..., HttpResponse]:
        @wraps(view)
        def answered(request: HttpRequest, secret: str) -> HttpResponse:
            try:
                link = _find(request, secret)
                with timezone.override(get_timezone(link.tenant.timezone)), tenant_scope(link.tenant_id):
                    response = view(request, link)
            except SilasError as refusal:
                response = refuse(request, refusal)
            response["Referrer-Policy"] = "no-referrer"
            patch_cache_control(response, private=True, no_store=True)
            return response

        return answered

    return decorate


def _find(request: HttpRequest, secret: str) -> DecisionLink:
    """Raises `SilasError`: `not_found` 404, and `too_many_attempts` 429 after too many unknown links."""
    tried = (Limit(f"approve:unknown:{sha256_hex(address_of(request))[:32]}", MAX_UNKNOWN, WINDOW_SECONDS),)
    if fixed_window.consume(tried) is not None:
        raise SilasError(ErrorCode.TOO_MANY_ATTEMPTS, _("Too many attempts. Wait 15 minutes."), status=429)
    link = decision_links.find_link(secret)
    if link is None:
        raise SilasError(ErrorCode.NOT_FOUND, _("This link isn't valid. Check that you copied all of it."), status=404)
    fixed_window.refund(tried)
    return link


@require_safe
@link_view(_refuse_as_page)
def start(request: HttpRequest, link: DecisionLink) -> HttpResponse:
    """Ask for the passkey, or say why the link has ended."""
    decision_links.require_usable(link)
    return render(request, "console/decision_link.html", {"link": link})


@require_POST
@link_view(_refuse_as_json)
def opening_options(request: HttpRequest, link: DecisionLink) -> HttpResponse:
    rp_id, origin = passkey_origin(request)
    return JsonResponse({"options": decision_links.begin_opening(link, rp_id=rp_id, origin=origin)})


@require_POST
@link_view(_refuse_as_page)
def show_card(request: HttpRequest, link: DecisionLink) -> HttpResponse:
    """Show the card and its buttons to the member, whose passkey has answered."""
    card = decision_links.open_link(link, assertion=request.POST.get("assertion", ""))
    if isinstance(card, AnswerRefused):
        return _refuse_as_page(request, SilasError(card.code, card.message, status=409))
    offered = decision_links.choices_of(card)
    context = {
        **card_face(card, reads_documents=True),
        "link": link,
        "card": card,
        "is_open": True,
        "buttons": [button for button in presenter.buttons_of(card) if button.value in {one.value for one in offered}],
        "takes_freetext": card.of_kind.takes_freetext(card.payload),
        "is_partial": len(offered) < len(card.of_kind.choices_on(card)),
        "may_approve": decision_links.may_approve(card, link.user),
    }
    return render(request, "console/decision_link.html", context)


@require_POST
@link_view(_refuse_as_json)
def answer_options(request: HttpRequest, link: DecisionLink) -> HttpResponse:
    rp_id, origin = passkey_origin(request)
    options = decision_links.begin_answer(link, **_answer(request, link), rp_id=rp_id, origin=origin)
    return JsonResponse({"options": options})


@require_POST
@link_view(_refuse_as_page)
def decide(request: HttpRequest, link: DecisionLink) -> HttpResponse:
    assertion = request.POST.get("assertion", "")
    outcome = decision_links.answer_link(link, **_answer(request, link), assertion=assertion)
    if isinstance(outcome, AnswerRefused):
        return _refuse_as_page(request, SilasError(outcome.code, outcome.message, status=409))
    context = {"outcome": "replaced" if isinstance(outcome, Card) else "decided" if outcome else "waiting"}
    return render(request, "console/decision_link.html", {**context, "card": get_card(link.card_id)})


def _answer(request: HttpRequest, link: DecisionLink) -> dict[str, Any]:
    """Return what the form says. A reason counts for declining, unless the card takes free text with any answer."""
    choice, freetext, card = request.POST.get("choice", ""), request.POST.get("freetext", ""), get_card(link.card_id)
    declines = any(
        one.value == choice and one.verdict == ApprovalVerdict.DECLINED for one in decision_links.choices_of(card)
    )
    words = freetext if declines or card.of_kind.takes_freetext(card.payload) else ""
    return {"choice": choice, "freetext": words, "face": request.POST.get("face", "")}
