"""Contacts: the people the company talks to, what they are known by, and what belongs to them.

All members may look; those who answer visitors change and merge, and owners export and erase. The services check what a
role may change.
"""

from __future__ import annotations

import json
from functools import partial
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.contacts.filters import STATES, ListFilter
from apps.console.pages.contacts.kinds import KIND_NAMES
from apps.contacts import erasure, history, queries, services
from apps.contacts.enums import ContactSource
from apps.contacts.export_serving import export_response
from apps.contacts.models import Contact
from apps.contacts.person_export import person_of_contact, person_of_visitor
from apps.memory.models import MemoryItem
from apps.memory.queries import MemoryFilter, list_memories
from apps.tenants.enums import Capability
from kernel.errors import SilasError
from kernel.ids import require_id

CONVERSATIONS, MEMORIES = 20, 10


@require_safe
@staff_view()
def listing(request: StaffRequest) -> HttpResponseBase:
    chosen, before = ListFilter(request.GET), request.GET.get("before", "")
    rows, older = queries.list_contacts(chosen.as_condition(), before=before)
    shown = queries.main_identities(rows)
    return page(
        request,
        "console/contacts.html",
        at="contacts",
        filter=chosen,
        lines=[(row, shown[row.pk]) for row in rows],
        before=before,
        older=older,
        states=STATES,
        sources=ContactSource.choices,
    )


@require_safe
@staff_view()
def contact(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    row = queries.contact(contact_id)
    if row.pk != contact_id:
        return redirect("console-contact", row.pk)
    return _contact(request, row)


def _contact(request: StaffRequest, row: Contact, *, refusal: SilasError | None = None) -> TemplateResponse:
    customers = tuple(queries.customers_of(row))
    memories: list[MemoryItem] = []
    if request.member.may_answer and customers:
        memories, _ = list_memories(MemoryFilter(customers=customers), limit=MEMORIES)
    conversations, more = queries.conversations_page(row, before=request.GET.get("before", ""), limit=CONVERSATIONS)
    return page(
        request,
        "console/contact.html",
        at="contacts",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        row=row,
        identities=row.identities.all(),
        stated={kind: _stated(row, kind) for kind in ("email", "phone")},
        customers=customers,
        attributes=sorted(row.attributes.items()),
        conversations=conversations,
        more=more,
        earlier=history.conversations_of(row),
        memories=memories,
        consents=queries.consents_of(row),
        notes=queries.notes_of(row),
        merges=queries.merges_of(row),
        duplicates=queries.duplicates_of(row),
        erasure=erasure.running_erasure(f"contact:{row.pk}"),
    )


@require_safe
@staff_view()
def history_of(request: StaffRequest, conversation_id: UUID) -> HttpResponseBase:
    """A conversation that was held in another system."""
    row = history.conversation(conversation_id)
    return page(request, "console/contact_history.html", at="contacts", row=row)


@require_POST
@staff_view(*ANSWERING_ROLES)
def add(request: StaffRequest) -> HttpResponseBase:
    email, customer = request.POST.get("email", ""), request.POST.get("customer", "").strip()
    row = services.save_contact(
        None,
        actor=request.member.user.actor,
        source=ContactSource.TEAM,
        name=request.POST.get("name", ""),
        emails=[email],
        customer=customer,
    )
    return redirect("console-contact", row.pk)


@require_POST
@staff_view(*ANSWERING_ROLES)
def save(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    services.save_contact(
        contact_id,
        actor=request.member.user.actor,
        source=ContactSource.TEAM,
        name=request.POST.get("name", ""),
        emails=request.POST.get("email", "").splitlines(),
        phones=request.POST.get("phone", "").splitlines(),
        customer=request.POST.get("customer", "").strip(),
    )
    return redirect("console-contact", contact_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def note(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    user = request.member.user
    services.add_note(contact_id, request.POST.get("text", ""), actor=user.actor, author=user)
    return redirect("console-contact", contact_id)


@staff_view(*ANSWERING_ROLES)
def merge(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    """Show what a merge would do; with POST, do it."""
    if request.method == "POST":
        services.merge(contact_id, require_id(request.POST.get("with", "")), actor=request.member.user.actor)
        return redirect("console-contact", contact_id)
    row, search = queries.contact(contact_id), request.GET.get("search", "").strip()
    chosen = request.GET.get("with", "")
    other = queries.contact(require_id(chosen)) if chosen else None
    found: list[Contact] = []
    if search:
        rows, _ = queries.list_contacts(queries.ContactFilter(search=search), limit=20)
        found = [each for each in rows if each.pk != row.pk]
    return page(
        request,
        "console/contact_merge.html",
        at="contacts",
        row=row,
        other=other if other and other.pk != row.pk else None,
        search=search,
        found=found,
        duplicates=queries.duplicates_of(row),
    )


@require_POST
@staff_view(*ANSWERING_ROLES)
def unmerge(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    back = services.unmerge(contact_id, require_id(request.POST.get("merge", "")), actor=request.member.user.actor)
    return redirect("console-contact", back.pk)


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def export(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    """Everything about the contact as a ZIP, to hand to them."""
    actor = request.member.user.actor
    return export_response(partial(person_of_contact, contact_id), request.member.tenant.pk, actor=actor)


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def export_visitor(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    actor = request.member.user.actor
    return export_response(partial(person_of_visitor, session_id), request.member.tenant.pk, actor=actor)


@require_POST
@staff_view(Capability.ADMINISTER)
def erase(request: StaffRequest, contact_id: UUID) -> HttpResponseBase:
    row = erasure.request_erasure(person_of_contact(contact_id), actor=request.member.user.actor)
    return redirect("console-erasure", row.pk)


@require_POST
@staff_view(Capability.ADMINISTER)
def erase_visitor(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    row = erasure.request_erasure(person_of_visitor(session_id), actor=request.member.user.actor)
    return redirect("console-erasure", row.pk)


@require_safe
@staff_view(Capability.ADMINISTER)
def erasures(request: StaffRequest) -> HttpResponseBase:
    return page(request, "console/erasures.html", at="contacts", rows=erasure.newest_erasures())


@require_safe
@staff_view(Capability.ADMINISTER)
def one_erasure(request: StaffRequest, erasure_id: UUID) -> HttpResponseBase:
    row = erasure.erasure_by_id(erasure_id)
    erased = [(KIND_NAMES.get(name, name), count) for name, count in row.counts.items()]
    kept = [
        (KIND_NAMES.get(part["kind"], part["kind"]), part["count"], part["why"])
        for part in (row.receipt or {}).get("kept", ())
    ]
    whose, _, pk = row.reference.partition(":")
    again = reverse("console-contact-erase" if whose == "contact" else "console-visitor-erase", args=[pk])
    return page(request, "console/erasure.html", at="contacts", row=row, erased=erased, kept=kept, again=again)


@require_safe
@staff_view(Capability.ADMINISTER)
def receipt(request: StaffRequest, erasure_id: UUID) -> HttpResponseBase:
    """The signed receipt as a file, to hand to the person."""
    signed = json.dumps(erasure.signed_receipt(erasure_id), indent=2)
    headers = {
        "Content-Disposition": f'attachment; filename="erasure-{erasure_id}.json"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(signed, content_type="application/json", headers=headers)


def _stated(row: Contact, kind: str) -> str:
    """What was said of this kind and not proved, one a line."""
    return "\n".join(each.value for each in row.identities.all() if each.kind == kind and not each.proved_by)
