"""List a person's login sessions and end them. One row per session, created with it.

Ending one deletes Django's session too: its cookie is worthless from then on, and a request that is under
way cannot write it back (Django updates only). Its open sockets are told, and the sweep finds those that were not.
Called by the console; rows are made by the receiver of Django's own signal, for every kind of login.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from importlib import import_module
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from redis.exceptions import RedisError

from apps.audit.enums import AuditEvent
from apps.tenants.access import LOGIN, METHOD
from apps.tenants.enums import LoginMethod
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import Login, User
from kernel.clock import now
from kernel.errors import NotFound
from kernel.live import publish_on_commit
from kernel.ratelimit.addresses import address_of

_SEEN_EVERY_SECONDS = 300
_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def group_of_login(login_id: UUID) -> str:
    """The channel-layer group of every socket that this login opened."""
    return f"login.{login_id.hex}"


def begin(request: Any, user: User) -> None:
    """A row for the session that Django has just opened."""
    moment, said = now(), request.META.get("HTTP_USER_AGENT", "")
    row = Login.objects.create(
        user_id=user.pk,
        # Set, because the earlier session is ended before Django's `login`, which would otherwise flush another
        # person's session here without making a new key.
        session_key=request.session.session_key,
        method=request.session.get(METHOD, LoginMethod.PASSWORD),
        device=device_of(said),
        address=shortened(address_of(request)),
        created_at=moment,
        seen_at=moment,
    )
    request.session[LOGIN] = str(row.pk)
    _is_news(str(row.pk))


def seen(session: SessionBase) -> None:
    """Record activity, at most every few minutes."""
    login_id = session.get(LOGIN, "")
    if login_id and _is_news(login_id):
        Login.objects.filter(pk=login_id).update(seen_at=now())


def _is_news(login_id: str) -> bool:
    """True if the cache has no recent record. A cache that cannot be reached delays no request."""
    try:
        return bool(cache.add(f"login:seen:{login_id}", 1, _SEEN_EVERY_SECONDS))
    except RedisError:
        return False


def logins_of(user: User) -> list[Login]:
    """Where the person is logged in, the newest use first. Those that ran out are forgotten on the way."""
    rows = list(Login.objects.filter(user_id=user.pk))
    keys = [row.session_key for row in rows]
    sessions = Session.objects.filter(session_key__in=keys, expire_date__gt=now())
    living = set(sessions.values_list("session_key", flat=True))
    gone = [row.pk for row in rows if row.session_key not in living]
    Login.objects.filter(pk__in=gone).delete()
    return [row for row in rows if row.session_key in living]


def ended_among(login_ids: Iterable[str]) -> set[str]:
    """Those of these logins that are no more."""
    wanted = set(login_ids)
    return wanted - {str(found) for found in Login.objects.filter(pk__in=wanted).values_list("pk", flat=True)}


def end(login_id: UUID, *, user: User) -> None:
    """Raises `NotFound` for a foreign one."""
    if not _end(Login.objects.filter(pk=login_id, user_id=user.pk), user):
        raise NotFound()


def end_others(session: SessionBase, user: User) -> int:
    """Every login of the person but this session's; returns how many."""
    return _end(Login.objects.filter(user_id=user.pk).exclude(session_key=session.session_key), user)


def end_all(user: User) -> int:
    return _end(Login.objects.filter(user_id=user.pk), user)


def forget(session: SessionBase) -> None:
    """The person logs out here."""
    Login.objects.filter(session_key=session.session_key or "").delete()


def keep_after_password_change(request: HttpRequest, user: User) -> None:
    """This session goes on under the new password and a new key; every other one ends."""
    # Makes a new session key as well, so that a holder of the old cookie is logged out (session fixation).
    update_session_auth_hash(request, user)
    request.session.save()
    if login_id := request.session.get(LOGIN, ""):
        Login.objects.filter(pk=login_id).update(session_key=request.session.session_key)
    end_others(request.session, user)


def device_of(user_agent: str) -> str:
    """What a person recognises: `Firefox on Linux`."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return " on ".join(filter(None, (browser, system))) or "An unknown device"


def shortened(address: str) -> str:
    """`203.0.113.9` → `203.0.113.x`; of the newer kind the first three of eight parts."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    # A dual-stack server sees an IPv4 client as such an address.
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    if isinstance(found, ipaddress.IPv4Address):
        return ".".join([*str(found).split(".")[:3], "x"])
    return ":".join([*found.exploded.split(":")[:3], "x"])


def _end(rows: QuerySet[Login], user: User) -> int:
    with transaction.atomic():
        # Locked, so that a login that ends twice at once is told and recorded once.
        ended = list(rows.select_for_update(no_key=True))
        for row in ended:
            _store(row.session_key).delete(row.session_key)
            publish_on_commit(group_of_login(row.pk), {"type": "console.ended"})
        Login.objects.filter(pk__in=[row.pk for row in ended]).delete()
        if ended:
            record_in_all_tenants(user, AuditEvent.LOGIN_ENDED, data={"logins": len(ended)})
    return len(ended)


def _store(key: str) -> Any:
    return import_module(settings.SESSION_ENGINE).SessionStore(key)
