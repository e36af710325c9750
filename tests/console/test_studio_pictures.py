"""Uploading a chatbot's logo and avatar in its Studio, and where staff see them."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.tenants.enums import PictureKind
from apps.tenants.models import Deployment, DeploymentPicture
from apps.tenants.pictures import store_picture
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.pictures import png
from tests.factories.sessions import make_session
from tests.factories.tenants import make_deployment, make_member


@pytest.fixture
def owner(tenant: Any) -> Any:
    return browser(make_member(tenant, "owner"))


def upload(client: Any, place: Any, content: bytes, kind: str = "logo") -> Any:
    file = BytesIO(content)
    file.name = "picture.png"
    return client.post(reverse("console-studio-picture", args=[place.pk, kind]), {"picture": file})


def read(place: Deployment) -> Deployment:
    with tenant_scope(place.tenant_id):
        return Deployment.objects.get(pk=place.pk)


def test_owner_uploads_and_removes_a_logo(owner: Any, deployment: Deployment) -> None:
    studio = reverse("console-studio", args=[deployment.pk])
    assert "Remove logo" not in owner.get(studio).content.decode()
    answer = upload(owner, deployment, png(120, 40))
    assert answer.status_code == 302
    assert answer["Location"] == f"{studio}#pictures"
    logo = read(deployment).logo
    assert logo is not None
    page = owner.get(studio).content.decode()
    assert f'<img class="logo" src="{logo["address"]}" alt="Logo">' in page
    assert "Remove logo" in page
    assert "Remove avatar" not in page
    owner.post(reverse("console-studio-picture-drop", args=[deployment.pk, "logo"]))
    assert read(deployment).logo is None


def test_refused_picture_is_named_beside_its_field(owner: Any, deployment: Deployment) -> None:
    answer = upload(owner, deployment, b"<svg/>", "avatar")
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Choose a PNG, JPEG or WebP picture." in page
    assert page.count('aria-invalid="true"') == 1
    assert read(deployment).avatar is None


def test_form_without_a_file_is_refused(owner: Any, deployment: Deployment) -> None:
    assert owner.post(reverse("console-studio-picture", args=[deployment.pk, "logo"])).status_code == 422


@pytest.mark.parametrize("name", ["console-studio-picture", "console-studio-picture-drop"])
def test_pictures_of_others_are_out_of_reach(owner: Any, tenant: Any, other_tenant: Any, name: str) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    with tenant_scope(other_tenant):
        store_picture(theirs, PictureKind.LOGO, png(), actor="system")
    for place, kind in ((theirs.pk, "logo"), (uuid4(), "logo"), (mine.pk, "banner")):
        file = BytesIO(png())
        assert owner.post(reverse(name, args=[place, kind]), {"picture": file}).status_code == 404
    assert browser(make_member(other_tenant, "owner")).post(reverse(name, args=[mine.pk, "logo"])).status_code == 404
    with tenant_scope(other_tenant):
        assert DeploymentPicture.objects.count() == 1


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_only_owners_change_pictures(tenant: Any, deployment: Deployment, role: str) -> None:
    client = browser(make_member(tenant, role))
    assert upload(client, deployment, png()).status_code == 403
    drop = reverse("console-studio-picture-drop", args=[deployment.pk, "logo"])
    assert client.post(drop).status_code == 403
    assert client.get(drop).status_code in (403, 405)


def test_avatar_stands_beside_the_bots_messages_in_the_conversation(
    owner: Any, tenant: Any, deployment: Deployment
) -> None:
    with tenant_scope(tenant):
        changed = store_picture(deployment, PictureKind.AVATAR, png(), actor="system")
    session = make_session(changed)
    with tenant_scope(tenant):
        chronicle.append(lock_session(session.pk), kind=EntryKind.MESSAGE, sender=Sender.BOT, text="Hello", payload={})
    assert changed.avatar is not None
    page = owner.get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert f'<img class="face bot" src="{changed.avatar["address"]}" alt="">' in page
