"""Test, store and remove a deployment's own model provider keys.

Sealed at once; only model runs read them (ADR 52). A key is tested with one small request before it is stored.
"""

from __future__ import annotations

import asyncio

from django.utils.text import format_lazy

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext, gettext_lazy
from llm.failures import ProviderFailed, ShapeBroken
from llm.keys import provider_of, seal_key
from llm.model_check import SECONDS, check_model
from llm.models import GROUNDED, needs_key

LONGEST_KEY = 400
_NO_ANSWER = format_lazy(
    gettext_lazy("The provider did not answer within {seconds} seconds."), seconds=f"{SECONDS:.0f}"
)
PROVIDER_MESSAGES = {
    "http_400": gettext_lazy("The provider rejected the request. Check the model name."),
    "http_401": gettext_lazy("The provider rejected this key."),
    "http_402": gettext_lazy("The provider account has no credit left."),
    "http_403": gettext_lazy("This key has no access to this model."),
    "http_404": gettext_lazy("The provider did not find this model or address. Check the model name."),
    "http_429": gettext_lazy("The provider reports too many requests or no credit left."),
    "request_timeout": _NO_ANSWER,
    "first_token_timeout": _NO_ANSWER,
    "connection_lost": gettext_lazy("The provider could not be reached."),
    "no_provider_key": gettext_lazy("Paste the provider's key."),
    "bad_provider_key": gettext_lazy("This is not a valid key: it contains characters that no key has."),
    "unknown_model": gettext_lazy("Unknown model name."),
}


def key_problem(key: str) -> str:
    """What is wrong with a pasted key, as a sentence; empty if nothing is."""
    if not key:
        return gettext("Paste the provider's API key.")
    if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        return gettext("This isn't a valid API key: it contains characters that keys never have.")
    return ""


def problem_with(model: str, key: str | None) -> str:
    """Send the model a small request and return what is wrong, or an empty string. Call it outside of any scope."""
    if model == GROUNDED:
        return ""
    if needs_key(model) and not key:
        return str(PROVIDER_MESSAGES["no_provider_key"])
    try:
        asyncio.run(check_model(model, key=key))
    except ProviderFailed as failed:
        return str(
            PROVIDER_MESSAGES.get(failed.reason)
            or gettext("The provider could not answer (%(reason)s).") % {"reason": failed.reason}
        )
    except (ShapeBroken, RuntimeError, ValueError, TypeError, AttributeError, LookupError) as failed:
        return gettext("The provider's answer could not be read (%(reason)s).") % {"reason": type(failed).__name__}
    return ""


def store_provider_key(deployment: Deployment, *, model: str, key: str, actor: str) -> None:
    """Store the key for the provider of `model`, replacing an older one; writes nothing if it is the same. Inside a
    scope. Raises `SilasError("bad_provider_key")` 422."""
    if problem := key_problem(key):
        raise SilasError(ErrorCode.BAD_PROVIDER_KEY, problem)
    provider = provider_of(model)
    row = _lock(deployment)
    if provider in row.sealed_keys and row.keys.of(model) == key:
        return
    row.sealed_keys = {**row.sealed_keys, provider: seal_key(key, provider=provider, owner=str(row.pk))}
    _save(row, AuditEvent.PROVIDER_KEY_STORED, provider, actor)
    deployment.sealed_keys = row.sealed_keys


def remove_provider_key(deployment: Deployment, *, provider: str, actor: str) -> None:
    """Remove the key of a provider. Raises `NotFound`."""
    row = _lock(deployment)
    if provider not in row.sealed_keys:
        raise NotFound()
    row.sealed_keys = {name: sealed for name, sealed in row.sealed_keys.items() if name != provider}
    _save(row, AuditEvent.PROVIDER_KEY_REMOVED, provider, actor)
    deployment.sealed_keys = row.sealed_keys


def copy_provider_keys(source: Deployment, target: Deployment, *, actor: str) -> None:
    """Copy the keys to another deployment of the company, sealed for that one."""
    for provider in source.sealed_keys:
        key = source.keys.of(f"{provider}:any")
        if key:
            store_provider_key(target, model=f"{provider}:any", key=key, actor=actor)


def _lock(deployment: Deployment) -> Deployment:
    row: Deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment.pk)
    return row


def _save(row: Deployment, event: AuditEvent, provider: str, actor: str) -> None:
    row.save(update_fields=["sealed_keys"])
    record(event, actor=actor, subject=f"deployment:{row.pk}", data={"provider": provider})
