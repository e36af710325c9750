"""The console's page of channels: for owners, with secrets that are entered and never shown."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.messengers import ports
from apps.messengers.models import Channel
from apps.messengers.ports import NotSent
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.messengers import Recorder, make_channel
from tests.factories.tenants import make_deployment, make_member, make_tenant


@pytest.fixture
def owner(tenant: Any) -> Client:
    return browser(make_member(tenant, "owner"))


def test_owner_adds_checks_tests_and_removes_a_channel(
    recorder: Recorder, owner: Client, tenant: Any, deployment: Any
) -> None:
    form = owner.get(reverse("console-channel-new", args=["sms"]))
    assert deployment.title in form.content.decode()
    values = {"deployment": str(deployment.pk), "name": "Texts", "number": "+4930123", "token": "very-secret"}
    made = owner.post(reverse("console-channel-new", args=["sms"]), values)
    with tenant_scope(tenant):
        row = Channel.objects.get()
    assert made["Location"] == reverse("console-channel", args=[row.pk])
    page = owner.get(made["Location"]).content.decode()
    assert f"/channels/sms/{row.public_id}" in page
    assert "very-secret" not in page
    assert "The connection works." in owner.post(reverse("console-channel-check", args=[row.pk])).content.decode()
    sent = owner.post(reverse("console-channel-test", args=[row.pk]), {"recipient": "+4917012345"})
    assert "The test message was sent." in sent.content.decode()
    assert recorder.sent[0][0].peer == "+4917012345"
    recorder.failures = [NotSent("unauthorized")]
    failed = owner.post(reverse("console-channel-check", args=[row.pk])).content.decode()
    assert "The provider refused the token" in failed
    assert "Texts" in owner.get(reverse("console-channels")).content.decode()
    owner.post(reverse("console-channel-switch", args=[row.pk]), {"enabled": "0"})
    with tenant_scope(tenant):
        assert not Channel.objects.get().enabled
    owner.post(reverse("console-channel-remove", args=[row.pk]))
    assert owner.get(reverse("console-channel", args=[row.pk])).status_code == 404


def test_wrong_field_is_named_and_what_was_typed_stays(recorder: Recorder, owner: Client, deployment: Any) -> None:
    values = {"deployment": str(deployment.pk), "name": "Texts", "number": "", "token": "very-secret"}
    refused = owner.post(reverse("console-channel-new", args=["sms"]), values)
    text = refused.content.decode()
    assert refused.status_code == 400
    assert "Enter a value." in text
    assert 'value="Texts"' in text
    assert "very-secret" not in text


def test_saved_settings_keep_the_secret_that_was_left_empty(recorder: Recorder, owner: Client, tenant: Any) -> None:
    row = make_channel(make_deployment(tenant))
    owner.post(reverse("console-channel", args=[row.pk]), {"name": "Renamed", "number": "+49", "token": ""})
    recorder.sent.clear()
    owner.post(reverse("console-channel-test", args=[row.pk]), {"recipient": "x"})
    assert recorder.sent[0][0].secrets == {"token": "secret-token"}
    assert recorder.sent[0][0].settings["number"] == "+49"


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_others_see_no_channels(recorder: Recorder, tenant: Any, role: str) -> None:
    row, client = make_channel(make_deployment(tenant)), browser(make_member(tenant, role))
    assert client.get(reverse("console-channels")).status_code == 403
    assert client.get(reverse("console-channel", args=[row.pk])).status_code == 403
    for word in ("check", "test", "switch", "remove"):
        assert client.post(reverse(f"console-channel-{word}", args=[row.pk])).status_code == 403


def test_another_companys_channel_is_not_found(recorder: Recorder, owner: Client) -> None:
    row = make_channel(make_deployment(make_tenant()))
    for word in ("check", "test", "switch", "remove"):
        assert owner.post(reverse(f"console-channel-{word}", args=[row.pk])).status_code == 404
    assert owner.get(reverse("console-channel", args=[row.pk])).status_code == 404
    assert owner.get(reverse("console-channel-new", args=["fax"])).status_code == 404
    assert owner.get(reverse("console-channel", args=[uuid4()])).status_code == 404


@pytest.mark.parametrize("kind", [adapter.kind for adapter in ports.adapters()])
def test_every_kind_has_a_form_with_its_steps(owner: Client, deployment: Any, kind: str) -> None:
    page = owner.get(reverse("console-channel-new", args=[kind])).content.decode()
    assert "How to set it up" in page
    for field in ports.adapter_of(kind).settings:
        assert f'name="{field.name}"' in page
