"""`python -m tests.faults.dispatcher`: a company with two sessions of one lane, of which the first is let in.

Prints its tenant and both sessions as JSON.
"""

from __future__ import annotations

import json

import django


def main() -> None:
    from apps.autonomy.services import admission
    from tests.factories.autonomy import make_house
    from tests.factories.tenants import make_tenant

    house = make_house(make_tenant())
    task = house.task(lane="one", route={"kind": "notify"}, playbook="unanswered", prompt="")
    house.ask("Do you sell parrots?", times=3)
    first, second = house.run_now(task), house.run_now(task)
    house.do(admission.admit_waiting)
    print(json.dumps({"tenant": str(house.tenant.pk), "first": str(first.pk), "second": str(second.pk)}))


if __name__ == "__main__":
    django.setup()
    main()
