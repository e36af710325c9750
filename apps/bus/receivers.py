"""Owe and carry out the work of the rooms below the bus, which announce it by signals: mail about accounts."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_later, when_dead
from apps.bus.services import owe
from apps.tenants import letters
from apps.tenants.models import Letter
from apps.tenants.signals import letter_written
from kernel.tenancy import INSTALLATION, tenant_scope


@letter_written.connect
def _owe_account_mail(letter: Letter) -> None:
    """An invitation is its company's; all other letters about accounts belong to no company."""
    with tenant_scope(letter.company_id or INSTALLATION):
        owe(Kind.ACCOUNT_MAIL, scope_id=letter.pk)


register_later(Kind.ACCOUNT_MAIL, letters.send)
when_dead(letters.give_up, Kind.ACCOUNT_MAIL)
