"""Test, store and remove a deployment's own model provider keys, and the addresses of its own model servers.

Sealed at once; only model runs read them (ADR 77). A key is tested with one small request before it is stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from django.utils.text import format_lazy

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.allowed import address_problem
from kernel.language import gettext, gettext_lazy
from llm.credentials import is_addressed, join_credential, provider_of, split_credential
from llm.failures import ProviderFailed, ShapeBroken
from llm.keys import seal_key
from llm.model_check import SECONDS, check_model, list_models
from llm.models import GROUNDED, KEYLESS, needs_key
from llm.runs import Usage

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
    "no_provider_address": gettext_lazy("Enter the address of the server."),
    "bad_base_url": gettext_lazy("This isn't an address. Example: https://llm.example.com/v1"),
    "answer_unreadable": gettext_lazy("The server's list of models could not be read."),
    "unknown_model": gettext_lazy("Unknown model name."),
}


@dataclass(frozen=True)
class ModelTest:
    """How the test of a model ended: what is wrong, as a sentence, else what it used, where the provider says so."""

    problem: str = ""
    usage: Usage | None = None


def key_problem(key: str) -> str:
    """What is wrong with a pasted key, as a sentence; empty if nothing is."""
    if not key:
        return gettext("Paste the provider's API key.")
    # An address in place of the key would be called without having been checked.
    is_address = bool(split_credential(key)[1])
    if is_address or len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        return gettext("This isn't a valid API key: it contains characters that keys never have.")
    return ""


def server_problem(model: str, *, key: str, address: str) -> str:
    """What is wrong with a key and an address for a model's provider, as a sentence; empty if nothing is."""
    if problem := server_address_problem(model, address):
        return problem
    return "" if is_addressed(model) and not key else key_problem(key)


def server_address_problem(model: str, address: str) -> str:
    """What is wrong with an address, or with none, for a model's provider, as a sentence; empty if nothing is."""
    if not is_addressed(model):
        return gettext("This provider has an address of its own. Choose another server instead.") if address else ""
    if address:
        return address_problem(address)
    return "" if provider_of(model) in KEYLESS else str(PROVIDER_MESSAGES["no_provider_address"])


def try_model(model: str, credential: str | None) -> ModelTest:
    """Send the model a small request. Call it outside of any scope."""
    if model == GROUNDED:
        return ModelTest()
    if needs_key(model) and not credential:
        return ModelTest(str(PROVIDER_MESSAGES["no_provider_key"]))
    try:
        return ModelTest(usage=asyncio.run(check_model(model, key=credential)))
    except ProviderFailed as failed:
        return ModelTest(_message(failed))
    # The server is the customer's and may answer anything; its answer ends the test, not the request.
    except (ShapeBroken, RuntimeError, ValueError, TypeError, AttributeError, LookupError) as failed:
        message = gettext("The provider's answer could not be read (%(reason)s).")
        return ModelTest(message % {"reason": type(failed).__name__})


def models_of(provider: str, credential: str | None) -> tuple[list[str], str]:
    """The names of the models that a provider's server lists, and what is wrong where it lists none. Call it outside of
    any scope."""
    try:
        listed = asyncio.run(list_models(provider, key=credential))
    except ProviderFailed as failed:
        return [], _message(failed)
    return listed, "" if listed else gettext("This server doesn't list its models. Enter a name.")


def _message(failed: ProviderFailed) -> str:
    return str(
        PROVIDER_MESSAGES.get(failed.reason)
        or gettext("The provider could not answer (%(reason)s).") % {"reason": failed.reason}
    )


def store_provider_key(deployment: Deployment, *, model: str, key: str, actor: str, address: str = "") -> None:
    """Store the key for the provider of `model`, replacing an older one; writes nothing if it is the same.

    `address` is that of the company's own server, for providers that need one (`llm.credentials.ADDRESSED`). Inside a
    scope. Raises `SilasError("bad_provider_key")` 422.
    """
    if problem := server_problem(model, key=key, address=address):
        raise SilasError(ErrorCode.BAD_PROVIDER_KEY, problem)
    provider, credential = provider_of(model), join_credential(key, address)
    row = _lock(deployment)
    if provider in row.sealed_keys and row.keys.of(model) == credential:
        return
    row.sealed_keys = {**row.sealed_keys, provider: seal_key(credential, provider=provider, owner=str(row.pk))}
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
        model = f"{provider}:any"
        key, address = split_credential(source.keys.of(model))
        if key or address:
            store_provider_key(target, model=model, key=key or "", address=address, actor=actor)


def server_addresses(deployment: Deployment) -> dict[str, str]:
    """The addresses of servers that are stored with a key, by provider."""
    stored = {name: split_credential(deployment.keys.of(f"{name}:any"))[1] for name in deployment.sealed_keys}
    return {name: address for name, address in stored.items() if address}


def _lock(deployment: Deployment) -> Deployment:
    row: Deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment.pk)
    return row


def _save(row: Deployment, event: AuditEvent, provider: str, actor: str) -> None:
    row.save(update_fields=["sealed_keys"])
    record(event, actor=actor, subject=f"deployment:{row.pk}", data={"provider": provider})
