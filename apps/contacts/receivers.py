"""Keep contacts as visitors are verified, and as websites describe them."""

from __future__ import annotations

from apps.access.rules import PUBLIC
from apps.access.signed_identity import Identity
from apps.contacts import rules, services
from apps.contacts.enums import IdentityKind, Proof
from apps.sessions.models import ChatSession
from apps.sessions.signals import customer_verified, visitor_described
from apps.visitors.signals import identity_signed
from kernel.clock import now


@customer_verified.connect
def _verified(session: ChatSession) -> None:
    """A verified visitor becomes a contact; a test conversation does not."""
    if session.is_test:
        return
    contact = services.identify(
        IdentityKind.CUSTOMER, session.customer, proved_by=Proof.GATE, name=session.customer_name
    )
    services.describe(contact, session.attributes, proved=False)


@identity_signed.connect
def _signed(identity: Identity) -> None:
    """What the site's own server says is proved."""
    contact = services.identify(IdentityKind.CUSTOMER, identity.customer, proved_by=Proof.SIGNED, name=identity.name)
    if email := rules.plain_email(identity.email):
        services.add_proved(contact, IdentityKind.EMAIL, email, Proof.SIGNED)
    if phone := rules.plain_phone(identity.phone):
        services.add_proved(contact, IdentityKind.PHONE, phone, Proof.SIGNED)
    services.describe(contact, identity.attributes, proved=True)


@visitor_described.connect
def _described(session: ChatSession) -> None:
    """What a page says counts for a contact only while its visitor is verified, and stays marked as unproved."""
    if session.is_test or session.level_at(now()) == PUBLIC:
        return
    contact = services.identify(IdentityKind.CUSTOMER, session.customer, proved_by=Proof.GATE)
    services.describe(contact, session.attributes, proved=False)
