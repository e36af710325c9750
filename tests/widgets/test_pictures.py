"""A chatbot's logo and avatar as any browser loads them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.tenants.enums import PictureKind
from apps.tenants.models import Deployment
from apps.tenants.pictures import remove_picture, store_picture
from kernel.tenancy import tenant_scope
from tests.factories.pictures import jpeg, png, webp
from tests.factories.tenants import make_deployment

POLYGLOT = png(32, 32) + b"<!doctype html><script>alert(1)</script>"


def store(deployment: Deployment, content: bytes, kind: PictureKind = PictureKind.LOGO) -> str:
    """Store the picture; returns its address."""
    with tenant_scope(deployment.tenant_id):
        changed = store_picture(deployment, kind, content, actor="system")
    shown = changed.logo if kind == PictureKind.LOGO else changed.avatar
    assert shown is not None
    return shown["address"]


@pytest.mark.parametrize(
    ("content", "media_type"), [(png(), "image/png"), (jpeg(), "image/jpeg"), (webp(), "image/webp")]
)
def test_picture_is_served_as_it_was_uploaded(
    client: Client, deployment: Deployment, content: bytes, media_type: str
) -> None:
    answer = client.get(store(deployment, content))
    assert answer.status_code == 200
    assert answer.content == content
    assert answer["Content-Type"] == media_type
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "Set-Cookie" not in answer


def test_picture_with_a_page_behind_it_stays_a_picture(client: Client, deployment: Deployment) -> None:
    answer = client.get(store(deployment, POLYGLOT))
    assert answer["Content-Type"] == "image/png"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer["X-Frame-Options"] == "DENY"


def test_pictures_are_where_the_widget_begins(client: Client, deployment: Deployment) -> None:
    logo = store(deployment, png(120, 40))
    avatar = store(deployment, png(64, 64), PictureKind.AVATAR)
    told = client.get(f"/widget/v1/{deployment.public_key}/appearance/").json()
    assert told["logo"] == {"address": logo, "width": 120, "height": 40}
    assert told["avatar"] == {"address": avatar, "width": 64, "height": 64}


def test_another_picture_has_another_address(client: Client, deployment: Deployment) -> None:
    first = store(deployment, png(32, 32))
    second = store(deployment, png(33, 33))
    assert first != second
    assert client.get(first).status_code == 404
    assert client.get(second).status_code == 200


def test_removed_picture_is_404(client: Client, deployment: Deployment) -> None:
    address = store(deployment, png())
    with tenant_scope(deployment.tenant_id):
        remove_picture(deployment, PictureKind.LOGO, actor="system")
    assert client.get(address).status_code == 404
    assert client.get(f"/widget/v1/{deployment.public_key}/appearance/").json()["logo"] is None


def test_picture_is_found_under_its_own_chatbot_kind_and_name_only(
    client: Client, deployment: Deployment, other_tenant: Any
) -> None:
    theirs = make_deployment(other_tenant)
    name = store(deployment, png()).rpartition("/")[2]
    store(theirs, png(33, 33))
    key = deployment.public_key
    for path in (
        f"{theirs.public_key}/logo/{name}",
        f"no-such-key/logo/{name}",
        f"UPPER/logo/{name}",
        f"{key}/avatar/{name}",
        f"{key}/content/{name}",
        f"{key}/logo/{name[:-4]}.jpg",
        f"{key}/logo/{'0' * 32}.png",
        f"{key}/logo/%00",
    ):
        assert client.get(f"/widget/v1/{path}").status_code == 404
    assert client.post(f"/widget/v1/{key}/logo/{name}").status_code == 405


def test_staff_see_the_picture_of_a_disabled_chatbot(client: Client, tenant: Any, deployment: Deployment) -> None:
    address = store(deployment, png())
    with tenant_scope(tenant):
        Deployment.objects.filter(pk=deployment.pk).update(enabled=False)
    assert client.get(address).status_code == 200
