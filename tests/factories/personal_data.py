"""A company with a signed website, whose customers write, for tests of their personal data."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.test import Client
from django.urls import reverse

from apps.contacts import queries
from apps.contacts.models import Contact
from apps.contacts.queries import ContactFilter
from apps.sessions.models import ChatSession
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.identity import make_identity_desk
from tests.factories.sessions import say
from tests.factories.signed import Site, make_site
from tests.factories.tenants import make_member, make_tenant

PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF"


@dataclass
class PersonalData:
    tenant: Any
    site: Site
    owner: Any
    stranger: Any

    def show(self, token: str = "", resume: str = "") -> ChatSession:
        body = {"identity_token": token} if token else {}
        body |= {"resume_token": resume} if resume else {}
        path = f"/api/v1/widget/{self.site.deployment.public_key}/sessions"
        answer = Client().post(path, body, content_type="application/json").json()
        with tenant_scope(self.tenant):
            session: ChatSession = ChatSession.objects.get(pk=answer["session_id"])
        session.__dict__["resume"] = answer["resume_token"]
        return session

    def customer(self, words: str) -> tuple[Contact, ChatSession, str]:
        """A verified customer who says this."""
        name = f"C-{uuid4().hex[:10]}"
        session = self.show(self.site.sign(sub=name))
        say(session, words)
        with tenant_scope(self.tenant):
            (row,) = queries.list_contacts(ContactFilter(customer=name))[0]
        return row, session, name

    def export(self, row: Contact, member: Any = None) -> dict[str, bytes]:
        answer = browser(member or self.owner).post(reverse("console-contact-export", args=[row.pk]))
        assert answer.status_code == 200
        assert answer["Content-Type"] == "application/zip"
        return unpacked(answer.getvalue())


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def make_personal_data(folder: Path) -> PersonalData:
    tenant = make_tenant()
    site = make_site(make_identity_desk(tenant, folder))
    return PersonalData(tenant, site, make_member(tenant, "owner"), make_member(make_tenant(), "owner"))
