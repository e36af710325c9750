"""A company with the demo's month behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import yaml

from apps.autonomy import services
from apps.inbox.labels_and_replies import save_label
from silas_platform import demo, demo_month
from tests.factories.autonomy import House
from tests.factories.knowledge import ingest_texts
from tests.factories.tenants import make_deployment, make_member

FOLDER = demo.FOLDER / "harbor-retail"


@dataclass(frozen=True)
class MonthHouse(House):
    """The retail company after its month. `talks`: how many conversations were held."""

    agent: Any
    talks: int = 0

    def talk(self, name: str, day: int) -> UUID:
        return demo_month.talk_id(self.deployment, name, day)


def make_month(tenant: Any, folder: Any = None) -> MonthHouse:
    """Seed the month, with the documents of the shop if there is a `folder` for texts."""
    owner, agent, deployment = make_member(tenant, "owner"), make_member(tenant, "agent"), make_deployment(tenant)
    house = MonthHouse(tenant, owner, deployment, agent)
    house.do(services.opt_in, owner)
    house.do(services.put_settings, actor="user:test", enabled=True, retry_base_seconds=1)
    described = yaml.safe_load((FOLDER / "tenant.yaml").read_text())
    for name, colour in described["labels"].items():
        house.do(save_label, owner, name=name, colour=colour)
    if folder is not None:
        texts = {path.stem.replace("-", "_"): path.read_text() for path in (FOLDER / "knowledge").glob("*.md")}
        ingest_texts(tenant, folder, **texts)
    talks = demo_month.seed_month(FOLDER, deployment, agent)
    return MonthHouse(tenant, owner, deployment, agent, talks)
