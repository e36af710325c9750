"""How far each member has read a conversation, for what is unread in their list.

Every member reads for themselves: a mark changes nothing for colleagues and is not audited. Unread is what the visitor
put in after the member's mark where the conversation concerns staff or the member marked it as unread, not while the
chatbot alone has it; and each note that mentions the member until they read the conversation. A chatbot with read
receipts shows visitors how far the member who answers has read.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import BigIntegerField, Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from apps.inbox.models import Mention, ReadMark
from apps.inbox.staff import Staff, member_of
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import session_by_id
from apps.sessions.rules import group_of
from apps.tenants.models import Membership, User
from apps.visitors.offers import offers_of
from kernel import live
from kernel.errors import NotFound

# What visitors put in: their words, choices and files.
PUT_IN = (*chronicle.SAID, EntryKind.FILE)
# A person is wanted, answers or has it assigned.
CONCERNS_STAFF = Q(owner=Owner.HUMAN) | Q(wanted_person_at__isnull=False) | Q(desk__assignee__isnull=False)


def put_in() -> QuerySet[ChronicleEntry]:
    """The entries of visitors that count as unread until a member reads them."""
    entries: QuerySet[ChronicleEntry] = ChronicleEntry.objects.filter(sender=Sender.VISITOR, kind__in=PUT_IN)
    return entries


def mark_read(session_id: UUID, user: User, *, up_to: int | None = None) -> bool:
    """Record that the member has read up to entry `up_to`, None for all. Only moves forward; of two rivals the further
    mark stays. Returns whether that is news."""
    session = session_by_id(session_id)
    seq = session.seq if up_to is None else min(up_to, session.seq)
    mine = ReadMark.objects.filter(session=session, user=user)
    if not mine.exists():
        ReadMark.objects.bulk_create([ReadMark(session=session, user=user, seq=0)], ignore_conflicts=True)
    moved = mine.filter(seq__lt=seq).update(seq=seq, marked_unread=False) > 0
    if moved and _is_shown_to_visitor(session, user.pk):
        live.publish_on_commit(group_of(session.pk), {"type": "chat.read", "up_to": seq})
    return bool(Mention.objects.filter(session=session, user=user, read=False).update(read=True)) or moved


def read_for_visitor(session: ChatSession) -> int:
    """Up to which entry the member who answers has read; 0 unless the chatbot tells visitors."""
    if session.owner_user_id is None or not _is_shown_to_visitor(session, session.owner_user_id):
        return 0
    mark = ReadMark.objects.filter(session=session, user=session.owner_user_id)
    return mark.values_list("seq", flat=True).first() or 0


def _is_shown_to_visitor(session: ChatSession, user_id: UUID) -> bool:
    """Visitors learn only of the member who answers them: colleagues look on unnoticed."""
    return session.owner_user_id == user_id and offers_of(session.deployment_id).read_receipts


def mark_unread(session_id: UUID, user: User) -> bool:
    """The visitor's last message is unread again until the member reads it, also where the chatbot alone has the
    conversation. False if they have written nothing."""
    session = session_by_id(session_id)
    last = put_in().filter(session=session).order_by("-seq").values_list("seq", flat=True).first()
    if last is None:
        return False
    ReadMark.objects.update_or_create(session=session, user=user, defaults={"seq": last - 1, "marked_unread": True})
    return True


def unread_in(session_ids: Iterable[UUID], user: User) -> dict[UUID, int]:
    """How many entries of the visitor, and notes that mention the member, the member has not read, in those
    conversations that have any."""
    rows = ChatSession.objects.filter(pk__in=list(session_ids)).annotate(read=_read_to(user))
    messages = Case(When(_may_be_unread(user), then=_number_of(_later())), default=Value(0))
    counted = rows.annotate(unread=messages + _number_of(_mentions(user))).values_list("pk", "unread")
    return {session_id: unread for session_id, unread in counted if unread}


def with_unread(rows: QuerySet[ChatSession], user: User) -> QuerySet[ChatSession]:
    """Those of `rows` for which `unread_in` counts something. `Case` has PostgreSQL look at entries last: otherwise it
    reads those of every conversation that the company ever had."""
    said = Case(When(_may_be_unread(user), then=Exists(_later())), default=Value(False))
    mentioned = Mention.objects.filter(user=user, read=False).values("session")
    return rows.alias(read=_read_to(user)).filter(Q(said) | Q(pk__in=mentioned))


def _may_be_unread(user: User) -> Q:
    return CONCERNS_STAFF | Q(pk__in=ReadMark.objects.filter(user=user, marked_unread=True).values("session"))


def _read_to(user: User) -> Coalesce:
    mark = ReadMark.objects.filter(session=OuterRef("pk"), user=user).values("seq")[:1]
    return Coalesce(Subquery(mark), Value(0), output_field=BigIntegerField())


def _later() -> QuerySet[ChronicleEntry]:
    """What the visitor put in after the mark, of a conversation that is annotated with it as `read`."""
    return put_in().filter(session=OuterRef("pk"), seq__gt=OuterRef("read"))


def _mentions(user: User) -> QuerySet[Mention]:
    rows: QuerySet[Mention] = Mention.objects.filter(session=OuterRef("pk"), user=user, read=False)
    return rows


def _number_of(rows: QuerySet[Mention] | QuerySet[ChronicleEntry]) -> Coalesce:
    """The number of rows of one conversation, as a part of a statement over many."""
    return Coalesce(Subquery(rows.order_by().values("session").annotate(number=Count("pk")).values("number")), Value(0))


def reader(member_id: UUID, by: Staff) -> User:
    """The member whose marks `by` may see and move: members their own, programs everybody's; else `not_found`."""
    member = member_of(by)
    if member is not None and member.pk != member_id:
        raise NotFound()
    found = Membership.objects.filter(user_id=member_id, user__is_active=True).select_related("user").first()
    if found is None:
        raise NotFound()
    user: User = found.user
    return user
