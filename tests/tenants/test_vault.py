"""Does the envelope hold, and can both of its keys be replaced while everything stays readable?"""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import override_settings

from apps.connections import credentials
from apps.connections.models import Connection
from apps.tenants import vault
from apps.tenants.models import DataKey, Deployment
from apps.tenants.provider_keys import store_provider_key
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.connections import make_connection


def test_what_is_sealed_opens_where_it_belongs(tenant: Any) -> None:
    with tenant_scope(tenant):
        assert vault.unseal(vault.seal(b"word", belongs_to="here"), belongs_to="here") == b"word"


@pytest.mark.parametrize("broken", [b"", b"\x01", b"\x02abcdef", b"\x01\x00\x00\x00\x09" + b"x" * 40])
def test_what_is_broken_does_not_open(tenant: Any, broken: bytes) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        vault.unseal(broken, belongs_to="here")
    assert refused.value.code == "seal_broken"


def test_another_tenant_cannot_open_it(tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant):
        sealed = vault.seal(b"word", belongs_to="here")
    with tenant_scope(other_tenant):
        vault.seal(b"makes their key", belongs_to="here")
        with pytest.raises(SilasError):
            vault.unseal(sealed, belongs_to="here")


def test_old_data_key_stays_readable_and_new_one_seals(tenant: Any) -> None:
    with tenant_scope(tenant):
        before = vault.seal(b"word", belongs_to="here")
        vault.rotate_data_key(actor="system")
        fresh = vault.reseal(before, belongs_to="here")
        assert vault.unseal(before, belongs_to="here") == b"word"
        assert fresh is not None
        assert vault.unseal(fresh, belongs_to="here") == b"word"
        assert vault.reseal(fresh, belongs_to="here") is None


def test_master_key_is_replaced_with_everything_readable_all_the_time(tenant: Any) -> None:
    with tenant_scope(tenant):
        sealed = vault.seal(b"word", belongs_to="here")
        before = settings.SILAS_SECRETS_KEY
        with override_settings(SILAS_SECRETS_KEY="the-next-key", SILAS_SECRETS_KEY_OLD=before):
            assert vault.unseal(sealed, belongs_to="here") == b"word"
            assert vault.rewrap(actor="system") == 1
            assert vault.rewrap(actor="system") == 0
        with override_settings(SILAS_SECRETS_KEY="the-next-key", SILAS_SECRETS_KEY_OLD=""):
            assert vault.unseal(sealed, belongs_to="here") == b"word"
        with pytest.raises(SilasError):
            vault.unseal(sealed, belongs_to="here")


def test_command_brings_everything_under_the_next_key(tenant: Any, deployment: Any) -> None:
    before, said = settings.SILAS_SECRETS_KEY, StringIO()
    with tenant_scope(tenant):
        store_provider_key(deployment, model="openai:x", key="sk-canary", actor="system")
        credentials.store(make_connection(tenant).pk, {"token": "word"})
    with override_settings(SILAS_SECRETS_KEY="the-next-key", SILAS_SECRETS_KEY_OLD=before):
        call_command("rotate_secrets", "--data-keys", tenant=tenant.slug, stdout=said)
    with override_settings(SILAS_SECRETS_KEY="the-next-key", SILAS_SECRETS_KEY_OLD=""), tenant_scope(tenant):
        row = Deployment.objects.get(pk=deployment.pk)
        assert row.keys.of("openai:x") == "sk-canary"
        assert credentials.unseal_all(Connection.objects.get().pk) == {"token": "word"}
    assert "keys=1 direct=1 values=1" in said.getvalue()


def test_wrapped_key_of_another_number_does_not_open(tenant: Any) -> None:
    with tenant_scope(tenant):
        sealed = vault.seal(b"word", belongs_to="here")
        vault.rotate_data_key(actor="system")
        first, second = DataKey.objects.order_by("number")
        DataKey.objects.filter(pk=first.pk).update(wrapped=bytes(second.wrapped))
        with pytest.raises(SilasError):
            vault.unseal(sealed, belongs_to="here")
