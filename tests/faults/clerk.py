"""`python -m tests.faults.clerk N`: a tenant with an approver and N changes that wait for approval, in a house.

Prints, as JSON, the deployment, who may approve, and the item, card and order of each change: every change is about an
order and a customer of its own, so that its effects can be counted.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import django

NOTE_VALUE = 50.0


def main(count: int) -> None:
    from tests.factories.skills import save_record
    from tests.factories.tenants import make_member, make_tenant
    from tests.factories.work import make_desk

    tenant = make_tenant()
    approver = make_member(tenant, "approver")
    desk = make_desk(tenant, Path(tempfile.mkdtemp()))
    items = []
    for number in range(count):
        save_record(tenant, "orders", f"C-{number}", subject=f"customer-{number}", total=1)
        items.append(_change(replace(desk, customer=f"customer-{number}"), f"C-{number}"))
    where = {"tenant": tenant.slug, "key": desk.deployment.public_key}
    person = {"username": approver.email, "password": "a-long-password"}
    print(json.dumps({**where, **person, "items": items}))


def _change(desk: Any, order: str) -> dict[str, str]:
    from tests.factories.work import note

    proposal = desk.propose(note(NOTE_VALUE, order))
    item = desk.item(proposal.work_item_id)
    return {"item": str(item.pk), "card": str(desk.card(item).pk), "order": order}


if __name__ == "__main__":
    django.setup()
    main(int(sys.argv[1]))
