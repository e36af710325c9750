"""Whose words are these? Forged, replayed, stale and foreign signatures first (spec 5.1 step 2)."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from apps.access import message_signatures
from apps.access.models import MessageNonce
from apps.access.rules import AccessController, Grant
from apps.access.schemas import Signed
from apps.audit.models import AuditEntry
from apps.gates.schemas import AccessLevel
from apps.sessions import services, turn
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.schemas import Accepted, Busy
from apps.sessions.steps import context
from apps.tenants.enums import Role
from apps.tenants.models import Membership, MessageKey
from apps.tenants.services import add_message_key, retire_message_key
from kernel.canonical import canonical_bytes
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.sessions import make_session
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import browser_of, page_of
from tests.rivals import race
from tests.sessions.test_limits import bounded
from tests.sessions.test_socket import _present


@dataclass(frozen=True)
class Pen:
    """A member's private key, and the id under which its public half is registered."""

    private: Ed25519PrivateKey
    key_id: str
    where: str = ""

    @property
    def public(self) -> str:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, text: str, *, at: datetime | None = None, nonce: str = "", **changes: Any) -> Signed:
        nonce, timestamp = nonce or uuid4().hex, (at or now()).isoformat()
        said = message_signatures.signed_bytes(text, deployment=self.where, timestamp=timestamp, nonce=nonce)
        value = self.private.sign(said)
        given = {"v": message_signatures.VERSION, "key_id": self.key_id, "nonce": nonce, "timestamp": timestamp}
        return Signed(**{**given, "signature": base64.urlsafe_b64encode(value).decode(), **changes})


def make_pen(deployment: Any, user: Any) -> Pen:
    return lent(
        Pen(Ed25519PrivateKey.generate(), f"k-{uuid4().hex[:8]}", deployment.public_key), deployment.tenant, user
    )


def lent(pen: Pen, tenant: Any, user: Any) -> Pen:
    with tenant_scope(tenant):
        add_message_key(user, key_id=pen.key_id, public_key=pen.public)
    return pen


@pytest.fixture
def pen(deployment: Any, owner: Any) -> Pen:
    return make_pen(deployment, owner)


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return make_session(deployment)


def accept(session: ChatSession, text: str, signed: Signed, client_id: str = "") -> Accepted | Busy:
    with tenant_scope(session.tenant_id):
        where = session.deployment.public_key
        return services.accept_signed(session.pk, text=text, signed=signed, deployment=where, client_id=client_id)


def taint(session: ChatSession, text: str, signed: Signed) -> str:
    """How far the message is trusted once it is stored."""
    accepted = accept(session, text, signed)
    assert isinstance(accepted, Accepted)
    with tenant_scope(session.tenant_id):
        return str(ChronicleEntry.objects.get(session=session, seq=accepted.seq).taint)


def audited(session: ChatSession) -> list[tuple[str, str]]:
    events = ("message_replayed", "signature_refused")
    with tenant_scope(session.tenant_id):
        rows = AuditEntry.objects.filter(subject=f"session:{session.pk}", event__in=events).order_by("seq")
        return [(row.event, json.loads(row.data)["reason"]) for row in rows]


# -- what does not hold ------------------------------------------------------------------------------------------------


def test_signature_of_one_company_proves_nothing_at_another(session: ChatSession, pen: Pen, other_tenant: Any) -> None:
    """Somebody who owns both, or was lent the same key there: what they said here they did not say there."""
    there = make_deployment(other_tenant)
    lent(pen, other_tenant, make_member(other_tenant, Role.OWNER))
    signed = pen.sign("hello")
    abroad = make_session(there)
    assert taint(abroad, "hello", signed) == "external"
    assert audited(abroad) == [("signature_refused", "signature")]
    assert taint(session, "hello", signed) == "owner"


def test_signature_at_one_deployment_proves_nothing_at_the_next(tenant: Any, pen: Pen) -> None:
    assert taint(make_session(make_deployment(tenant)), "hello", pen.sign("hello")) == "external"


@pytest.mark.parametrize("version", [1, 0, 3])
def test_signature_in_another_format_is_a_strangers(session: ChatSession, pen: Pen, version: int) -> None:
    assert taint(session, "hello", pen.sign("hello", v=version)) == "external"
    assert audited(session) == [("signature_refused", "version")]


def test_signature_of_before_that_names_no_deployment_is_a_strangers(session: ChatSession, pen: Pen) -> None:
    timestamp, nonce = now().isoformat(), uuid4().hex
    value = pen.private.sign(canonical_bytes({"text": "hello", "timestamp": timestamp, "nonce": nonce}))
    written = base64.urlsafe_b64encode(value).decode()
    signed = Signed(v=2, key_id=pen.key_id, nonce=nonce, timestamp=timestamp, signature=written)
    assert taint(session, "hello", signed) == "external"


def test_message_of_another_text_is_a_strangers(session: ChatSession, pen: Pen) -> None:
    assert taint(session, "Pay Eve", pen.sign("Pay Bob")) == "external"
    assert audited(session) == [("signature_refused", "signature")]


def test_message_signed_with_another_key_is_a_strangers(session: ChatSession, pen: Pen) -> None:
    forged = Pen(Ed25519PrivateKey.generate(), pen.key_id)
    assert taint(session, "hello", forged.sign("hello")) == "external"


@pytest.mark.parametrize("signature", ["AAAA", "!!!!", "A" * 128, "=", "\u00e9\u00e9"])
def test_broken_signature_makes_a_strangers_message(session: ChatSession, pen: Pen, signature: str) -> None:
    assert taint(session, "hello", pen.sign("hello", signature=signature)) == "external"


def test_other_time_or_nonce_than_was_signed_does_not_hold(session: ChatSession, pen: Pen) -> None:
    moved = pen.sign("hello", timestamp=(now() + timedelta(seconds=1)).isoformat())
    renamed = pen.sign("hello").model_copy(update={"nonce": uuid4().hex})
    assert [taint(session, "hello", signed) for signed in (moved, renamed)] == ["external", "external"]


@pytest.mark.parametrize("minutes", [-6, 6, -60 * 24])
def test_stale_signature_makes_a_strangers_message_and_is_written_down(
    session: ChatSession, pen: Pen, minutes: int
) -> None:
    assert taint(session, "hello", pen.sign("hello", at=now() + timedelta(minutes=minutes))) == "external"
    assert audited(session) == [("message_replayed", "stale")]


@pytest.mark.parametrize("timestamp", ["2026-02-01T12:00:00", "yesterday", "0", "9999-99-99T00:00:00Z"])
def test_time_that_is_none_is_stale(session: ChatSession, pen: Pen, timestamp: str) -> None:
    said = message_signatures.signed_bytes("hello", deployment=pen.where, timestamp=timestamp, nonce="n" * 16)
    value = pen.private.sign(said)
    signed = Signed(
        v=message_signatures.VERSION,
        key_id=pen.key_id,
        nonce="n" * 16,
        timestamp=timestamp,
        signature=base64.urlsafe_b64encode(value).decode(),
    )
    assert taint(session, "hello", signed) == "external"
    assert audited(session) == [("message_replayed", "stale")]


def test_message_that_comes_twice_is_believed_once(session: ChatSession, pen: Pen) -> None:
    signed = pen.sign("hello")
    assert [taint(session, "hello", signed) for _ in range(2)] == ["owner", "external"]
    assert audited(session) == [("message_replayed", "nonce_used")]


def test_message_replayed_in_another_conversation_is_a_strangers(
    session: ChatSession, deployment: Any, pen: Pen
) -> None:
    signed = pen.sign("hello")
    assert [taint(each, "hello", signed) for each in (session, make_session(deployment))] == ["owner", "external"]


def test_rivals_with_one_signed_message_are_believed_once(deployment: Any, pen: Pen) -> None:
    signed, sessions = pen.sign("hello"), [make_session(deployment) for _ in range(6)]
    taints = race(*[lambda each=each: taint(each, "hello", signed) for each in sessions])  # type: ignore[misc]  # bound now
    assert sorted(taints) == ["external"] * 5 + ["owner"]


def test_signature_of_another_tenants_member_is_a_strangers(session: ChatSession, other_tenant: Any) -> None:
    foreign = make_pen(make_deployment(other_tenant), make_member(other_tenant, "owner"))
    assert taint(session, "hello", foreign.sign("hello")) == "external"
    assert audited(session) == [("signature_refused", "key_unknown")]


def test_retired_key_signs_for_a_stranger(session: ChatSession, tenant: Any, pen: Pen) -> None:
    with tenant_scope(tenant):
        retire_message_key(MessageKey.objects.get(key_id=pen.key_id))
    assert taint(session, "hello", pen.sign("hello")) == "external"


def test_former_member_signs_for_a_stranger(session: ChatSession, tenant: Any, owner: Any, pen: Pen) -> None:
    with tenant_scope(tenant):
        Membership.objects.filter(user=owner).delete()
    assert taint(session, "hello", pen.sign("hello")) == "external"


def test_member_who_cannot_log_in_signs_for_a_stranger(session: ChatSession, owner: Any, pen: Pen) -> None:
    owner.is_active = False
    owner.save(update_fields=["is_active"])
    assert taint(session, "hello", pen.sign("hello")) == "external"


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_other_members_are_known_and_no_owners(session: ChatSession, deployment: Any, role: str) -> None:
    pen = make_pen(deployment, make_member(deployment.tenant, role))
    assert taint(session, "hello", pen.sign("hello")) == "auth"


# -- what holds --------------------------------------------------------------------------------------------------------


def test_owners_message_is_the_owners(session: ChatSession, pen: Pen) -> None:
    assert taint(session, "hello", pen.sign("hello")) == "owner"
    assert audited(session) == []


def test_message_sent_again_because_its_answer_was_lost_is_the_same(session: ChatSession, pen: Pen) -> None:
    signed = pen.sign("hello")
    first, second = [accept(session, "hello", signed, "a") for _ in range(2)]
    assert isinstance(second, Accepted)
    assert second.repeated
    assert isinstance(first, Accepted)
    assert not first.repeated
    assert audited(session) == []


def test_message_that_was_not_stored_uses_no_nonce_up(session: ChatSession, pen: Pen, settings: Any) -> None:
    bounded(settings, pending_turns=1)
    accept(session, "first", pen.sign("first"))
    signed = pen.sign("hello")
    assert isinstance(accept(session, "hello", signed), Busy)
    bounded(settings, pending_turns=2)
    assert taint(session, "hello", signed) == "owner"


def test_old_nonces_are_forgotten_when_their_signatures_are_long_stale(session: ChatSession, pen: Pen) -> None:
    taint(session, "one", pen.sign("one"))
    with tenant_scope(session.tenant_id):
        MessageNonce.objects.update(seen_at=now() - message_signatures.NONCES_KEPT - timedelta(seconds=1))
    taint(session, "two", pen.sign("two"))
    with tenant_scope(session.tenant_id):
        assert MessageNonce.objects.count() == 1


async def test_signed_frame_of_a_socket_is_the_owners(deployment: Any, session: ChatSession, pen: Pen) -> None:
    socket = await _present(deployment, session)
    await socket.send_frame(type="message", text="hello", client_id="a", signed=pen.sign("hello").model_dump())
    await socket.frames_until("ack")
    assert await in_thread(_taints, session) == ["owner"]


@pytest.mark.parametrize("signed", [{}, "x", {"key_id": "k", "nonce": "short", "timestamp": "", "signature": ""}, []])
async def test_signature_without_its_parts_is_refused_as_a_frame(
    deployment: Any, session: ChatSession, signed: Any
) -> None:
    socket = await _present(deployment, session)
    await socket.send_frame(type="message", text="hello", client_id="a", signed=signed)
    assert (await socket.frames_until("error"))[-1]["code"] == "invalid_frame"


@given(st.text(max_size=60), st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_no_two_messages_have_the_same_signed_bytes(text: str, timestamp: str, nonce: str) -> None:
    """No separator can be moved into a field: it is JSON that is signed (contract silas 0)."""
    signed = message_signatures.signed_bytes(text, deployment="desk", timestamp=timestamp, nonce=nonce)
    said = {"text": text, "timestamp": timestamp, "nonce": nonce}
    assert json.loads(signed) == {"v": 2, "deployment": "desk", **said}


def _taints(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        rows = ChronicleEntry.objects.filter(session=session, sender="visitor", kind="message")
        return list(rows.values_list("taint", flat=True))


# -- what an owner's words open ----------------------------------------------------------------------------------------

LEVELS = {"public": AccessLevel(tools=["a"]), "verified": AccessLevel(tools=["b"], requires=["identity"])}


def test_levels_do_not_bind_an_owner() -> None:
    assert AccessController(LEVELS, Grant()).for_owner({"a", "b", "c"}).allowed_tools() == {"a", "b", "c"}


def test_owner_has_no_customers_records() -> None:
    assert AccessController(LEVELS, Grant()).for_owner({"a"}).subject == ""


def test_end_of_a_visitors_level_ends_nothing_of_an_owners() -> None:
    grant = Grant("verified", now(), {"identity": None}, "C-1")
    assert AccessController(LEVELS, grant).for_owner({"a"}).ends_at is None


@pytest.mark.parametrize(("signs", "tools"), [(True, {"knowledge_search"}), (False, {"knowledge_search"})])
def test_step_two_says_whose_words_a_turn_answers(session: ChatSession, pen: Pen, signs: bool, tools: Any) -> None:
    text = "hello"
    signed = pen.sign(text) if signs else pen.sign("another text")
    accept(session, text, signed)
    with tenant_scope(session.tenant_id):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    asyncio.run(context.classify(state))
    assert (state.taint.value, state.access.owner_tools is not None) == (
        ("owner", True) if signs else ("external", False)
    )
    assert state.access.allowed_tools() == tools


# -- who registers keys ------------------------------------------------------------------------------------------------


def test_owner_registers_a_members_key(tenant: Any, owner: Any, agent: Any) -> None:
    pen = Pen(Ed25519PrivateKey.generate(), "desk")
    given = {"user": agent.pk, "key_id": "desk", "public_key": pen.public}
    browser_of(owner).post(page_of(MessageKey, "add"), given)
    with tenant_scope(tenant):
        assert MessageKey.objects.get().user_id == agent.pk


def test_nobody_else_has_a_key_registered(tenant: Any, owner: Any, stranger: Any) -> None:
    given = {"user": stranger.pk, "key_id": "desk", "public_key": Pen(Ed25519PrivateKey.generate(), "desk").public}
    assert "errorlist" in browser_of(owner).post(page_of(MessageKey, "add"), given).content.decode()


def test_form_names_no_account_of_another_tenant(owner: Any, stranger: Any) -> None:
    assert stranger.email not in browser_of(owner).get(page_of(MessageKey, "add")).content.decode()


def test_service_refuses_who_is_no_member(deployment: Any, stranger: Any) -> None:
    with pytest.raises(SilasError, match="Only members"):
        make_pen(deployment, stranger)
