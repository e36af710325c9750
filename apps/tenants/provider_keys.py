"""How does a deployment come to a model provider's key of its own, and lose it? Sealed at once; nothing reads it back
but a model run (docs/adr/0052)."""

from __future__ import annotations

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment
from kernel.errors import NotFound, SilasError
from kernel.llm.keys import provider_of, seal_key

LONGEST_KEY = 400


def key_problem(key: str) -> str:
    """What is wrong with what somebody pasted, or empty."""
    if not key:
        return "Paste the provider's key."
    if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        return "This is not a key: it has characters that no key has."
    return ""


def store_provider_key(deployment: Deployment, *, model: str, key: str, actor: str) -> None:
    """Keep the key of the provider of `model`, in the place of an older one; the same key twice is one write. Inside a
    scope. Raises `SilasError("bad_provider_key")` 422."""
    if problem := key_problem(key):
        raise SilasError("bad_provider_key", problem, status=422)
    provider = provider_of(model)
    row = _locked(deployment)
    if provider in row.sealed_keys and row.keys.of(model) == key:
        return
    row.sealed_keys = {**row.sealed_keys, provider: seal_key(key, provider=provider, owner=str(row.pk))}
    _saved(row, AuditEvent.PROVIDER_KEY_STORED, provider, actor)
    deployment.sealed_keys = row.sealed_keys


def remove_provider_key(deployment: Deployment, *, provider: str, actor: str) -> None:
    """Its models are asked with no key from this commit on. Raises `NotFound`."""
    row = _locked(deployment)
    if provider not in row.sealed_keys:
        raise NotFound("key")
    row.sealed_keys = {name: sealed for name, sealed in row.sealed_keys.items() if name != provider}
    _saved(row, AuditEvent.PROVIDER_KEY_REMOVED, provider, actor)
    deployment.sealed_keys = row.sealed_keys


def copy_provider_keys(source: Deployment, target: Deployment, *, actor: str) -> None:
    """The same keys for another deployment of the company, sealed for that one."""
    for provider in source.sealed_keys:
        key = source.keys.of(f"{provider}:any")
        if key:
            store_provider_key(target, model=f"{provider}:any", key=key, actor=actor)


def _locked(deployment: Deployment) -> Deployment:
    row: Deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment.pk)
    return row


def _saved(row: Deployment, event: AuditEvent, provider: str, actor: str) -> None:
    row.save(update_fields=["sealed_keys"])
    record(event, actor=actor, subject=f"deployment:{row.pk}", data={"provider": provider})
