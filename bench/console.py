"""Does the console keep its pace in a company that has been at it for a year? With 100,000 conversations and 1,000 open
cards every page has to answer within 150 ms of server time, 95 times of 100.

The year is seeded in bulk SQL. Pages are asked of this process itself, each beside the same page of a company in which
nothing has happened yet.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from typing import Any
from uuid import uuid4

from bench.report import Row
from bench.stage import servers

CONVERSATIONS, OPEN_CARDS, DECIDED_CARDS = 100_000, 1_000, 5_000
WARM, ROUNDS = 3, 25
MOST_MS = 150.0
PAGES = {
    "review": "/console/review/",
    "a card": "{card}",
    "inbox": "/console/inbox/",
    "inbox, all": "/console/inbox/?tab=all",
    "a conversation": "{conversation}",
    "activity": "/console/activity/",
    "insights, 7 days": "/console/insights/?days=7",
    "insights, 30 days": "/console/insights/?days=30",
    "insights, 90 days": "/console/insights/?days=90",
    "insights, 90 days, one chatbot": "/console/insights/?days=90&chatbot={chatbot}",
    "spending": "/console/spending/",
    "work": "/console/work/",
    "queues": "/console/queues/",
    "gates": "/console/gates/",
    "runs": "/console/runs/",
    "notices": "/console/notices/",
    "rail": "/console/rail/",
    "alerts": "/console/account/alerts/",
}

_SESSIONS = """
    INSERT INTO silas_sessions_chatsession (id, tenant_id, deployment_id, resume_hash, locale, language, owner,
        owner_epoch, wanted_person_at, wanted_queue, wanted_because, seq, turns, preview, last_sender, created_at,
        last_active_at, focus, level, verified_gates, customer, customer_name, last_customer, attributes)
    SELECT gen_random_uuid(), %(tenant)s, (%(places)s::uuid[])[1 + n %% 3], md5(n::text) || md5((n + 1)::text),
        'en', 'en', CASE WHEN n %% 200 = 0 THEN 'human' ELSE 'bot' END, 0,
        CASE WHEN n %% 500 = 1 THEN now() - n * interval '1 second' END, '', '', 6, 3, 'Where is my parcel?', 'bot',
        now() - (n * 315 + 60) * interval '1 second', now() - n * 315 * interval '1 second', '{}', 'public',
        '{}', '', '', '', '{}'
    FROM generate_series(1, %(count)s) AS n
"""
_CHRONICLE = """
    INSERT INTO silas_sessions_chronicleentry
        (id, tenant_id, session_id, seq, kind, sender, text, payload, taint, client_id, turn, created_at)
    SELECT gen_random_uuid(), s.tenant_id, s.id, n, 'message', CASE WHEN n %% 2 = 1 THEN 'visitor' ELSE 'bot' END,
        'Two to four days, and you can follow it.',
        CASE WHEN n = 2 THEN '{"citations": [{"title": "Delivery"}]}'::jsonb ELSE '{}' END,
        'external', '', (n + 1) / 2, s.created_at + n * interval '2 seconds'
    FROM silas_sessions_chatsession s CROSS JOIN generate_series(1, 6) AS n
    WHERE s.tenant_id = %(tenant)s AND s.id <> %(session)s
"""
_TURNS = """
    INSERT INTO silas_sessions_turn (id, tenant_id, session_id, message_seq, number, epoch, step, status, reason,
        model_name, started_at, finished_at, context)
    SELECT gen_random_uuid(), s.tenant_id, s.id, 2 * n - 1, n, 0, 'closing',
        CASE WHEN s.seq %% 50 = 0 THEN 'stopped' ELSE 'done' END, '', 'builtin:grounded',
        s.created_at + n * interval '4 seconds', s.created_at + (n * 4 + 1 + random()) * interval '1 second',
        jsonb_build_object('zones', repeat('x', 600))
    FROM silas_sessions_chatsession s CROSS JOIN generate_series(1, 3) AS n WHERE s.tenant_id = %(tenant)s
"""
_AUDIT = """
    INSERT INTO audit_auditentry (entry_id, tenant_id, chain, seq, event, actor, subject, data, timestamp, prev_hash,
        entry_hash)
    SELECT gen_random_uuid(), %(tenant)s, %(tenant)s, 100000 + row_number() OVER (ORDER BY s.created_at, k),
        CASE WHEN k < 4 THEN 'turn_completed' WHEN k = 4 AND s.pick THEN 'person_wanted'
             WHEN k = 5 AND s.pick THEN 'staff_replied' ELSE 'message_accepted' END,
        'system', 'session:' || s.id, CASE WHEN k = 4 THEN '{"because":"asked"}' ELSE '{}' END,
        s.created_at + k * interval '5 seconds', md5(s.id::text || k) || md5('p'), md5(k || s.id::text) || md5('h')
    FROM (SELECT *, get_byte(uuid_send(id), 0) < 26 AS pick FROM silas_sessions_chatsession
          WHERE tenant_id = %(tenant)s) s CROSS JOIN generate_series(1, 6) AS k
"""
_HEAD = """
    UPDATE audit_audithead SET seq = (SELECT max(seq) FROM audit_auditentry WHERE chain = %(tenant)s)
    WHERE chain = %(tenant)s
"""


def run() -> list[Row]:
    with servers({"ALLOWED_HOSTS": "127.0.0.1,testserver"}):
        empty, full = _company("empty"), _company("full")
        started = time.perf_counter()
        seed(full)
        print(f"seeded in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        return [_row(name, _p95(full, path), _p95(empty, path)) for name, path in PAGES.items()]


def _row(name: str, full: float, empty: float) -> Row:
    bound = f"≤ {MOST_MS:.0f} ms"
    return Row(f"console, {name}, p95", full, "ms", "of an empty company", empty, full / empty, bound, full <= MOST_MS)


class Company:
    """A tenant with its owner, three chatbots, a card and a conversation."""

    def __init__(self, name: str) -> None:
        from django.test import Client

        from apps.tenants.models import Deployment, Membership, Tenant, User
        from kernel.tenancy import tenant_scope
        from tests.factories.console import make_card
        from tests.factories.sessions import make_session, say

        self.tenant = Tenant.objects.create(slug=f"{name}-{uuid4().hex[:6]}", name=name)
        self.owner = User.objects.create_user(f"{name}-{uuid4().hex}@example.com", "a-long-password")
        with tenant_scope(self.tenant):
            Membership.objects.create(user=self.owner, role="owner")
            keys = [f"k-{uuid4().hex[:12]}" for _ in range(3)]
            self.places = [Deployment.objects.create(slug=key, title=key, public_key=key) for key in keys]
        self.card, self.session = make_card(self.tenant), make_session(self.places[0])
        say(self.session, "Where is my parcel?")
        self.client: Any = Client()
        self.client.force_login(self.owner)

    def address(self, path: str) -> str:
        return path.format(
            card=f"/console/review/{self.card.pk}/",
            conversation=f"/console/inbox/{self.session.pk}/",
            chatbot=self.places[0].pk,
        )


def _company(name: str) -> Company:
    return Company(name)


def seed(company: Company) -> None:
    from django.db import connections

    values = {
        "tenant": company.tenant.pk,
        "places": [place.pk for place in company.places],
        "count": CONVERSATIONS,
        "card": company.card.pk,
        "session": company.session.pk,
        "owner": company.owner.pk,
    }
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT set_config('silas.platform', 'on', false)")
        _seed_cards(cursor, values)
        for statement in (_SESSIONS, _CHRONICLE, _TURNS, _AUDIT, _HEAD):
            cursor.execute(statement, values)
        cursor.execute("SELECT set_config('silas.platform', '', false)")
        for table in ("silas_sessions_chatsession", "silas_sessions_chronicleentry", "silas_sessions_turn"):
            cursor.execute(f"VACUUM ANALYZE {table}")
        for table in ("audit_auditentry", "approvals_card", "approvals_decision", "approvals_look"):
            cursor.execute(f"VACUUM ANALYZE {table}")


def _seed_cards(cursor: Any, values: dict[str, Any]) -> None:
    """Copies of the one card: open ones, and such as were decided over the year, which no card is born as."""
    from apps.approvals.models import Card

    cursor.execute("ALTER TABLE approvals_card DISABLE TRIGGER USER")
    names = [field.column for field in Card._meta.concrete_fields]
    other = {
        "id": "gen_random_uuid()",
        "subject_id": "gen_random_uuid()",
        "created_at": "now() - n * interval '1 minute'",
        "expires_at": "now() + interval '30 days'",
    }
    settled = {"status": "'decided'", "settled_at": "now() - n * interval '90 minutes'"}
    for count, changed in ((OPEN_CARDS, other), (DECIDED_CARDS, {**other, **settled})):
        columns = ", ".join(changed.get(name, f"c.{name}") for name in names)
        cursor.execute(
            f"INSERT INTO approvals_card ({', '.join(names)}) SELECT {columns} FROM approvals_card c"
            f" CROSS JOIN generate_series(1, {count}) AS n WHERE c.id = %(card)s",
            values,
        )
    cursor.execute("ALTER TABLE approvals_card ENABLE TRIGGER USER")
    cursor.execute(
        "INSERT INTO approvals_decision (id, tenant_id, card_id, user_id, verdict, approval_strength, conditions, said,"
        " decided_at) SELECT gen_random_uuid(), tenant_id, id, %(owner)s, 'declined', 'tap', '{}', '{}', settled_at"
        " FROM approvals_card WHERE tenant_id = %(tenant)s AND status = 'decided'",
        values,
    )


def _p95(company: Company, path: str) -> float:
    address, times = company.address(path), []
    for _ in range(WARM + ROUNDS):
        started = time.perf_counter()
        answer = company.client.get(address, secure=True, HTTP_HOST="127.0.0.1")
        times.append((time.perf_counter() - started) * 1000)
        if answer.status_code != 200:
            raise RuntimeError(f"{address}: {answer.status_code}")
    if os.environ.get("BENCH_ALL"):
        print(path, round(statistics.median(times[WARM:]), 1), file=sys.stderr)
    return sorted(times[WARM:])[math.ceil(0.95 * ROUNDS) - 1]
