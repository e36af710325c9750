"""Changes that wait for an approval, whose effects are counted by the database itself, while a house is broken.

`Changes` approves them as a person would and says afterwards what became of each: tests of faults assert that nothing
happened twice, that everything reported as done happened, and that what is left says why.
"""

from __future__ import annotations

import http.client
import itertools
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests import nursery
from tests.faults.house import ROOT, House, Web
from tests.faults.staff import Staff

PRESS_SECONDS, REST_SECONDS = 30.0, 300.0
# At the end, holders are taken for dead at every fifth look: a living one on a busy machine needs longer than one.
LOOKS_A_LEASE = 5
FINAL = ("done", "failed", "stuck", "blocked")

_LEDGER = """
CREATE TABLE chaos_ledger (key text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION chaos_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS
    $$ BEGIN INSERT INTO chaos_ledger (key) VALUES (NEW.key); RETURN NEW; END $$;
ALTER TABLE chaos_ledger OWNER TO silas_owner;
ALTER FUNCTION chaos_write() OWNER TO silas_owner;
CREATE TRIGGER chaos_write AFTER UPDATE ON skills_record FOR EACH ROW EXECUTE FUNCTION chaos_write();
"""


class Changes:
    """`count` changes in a tenant of their own. `key`: of that tenant's chatbot."""

    def __init__(self, house: House, count: int) -> None:
        self.house = house
        house.rows(_LEDGER)
        command = [sys.executable, "-m", "tests.faults.clerk", str(count)]
        said = nursery.run(command, cwd=ROOT, env=house.env(), capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        told = json.loads(said.stdout.splitlines()[-1])
        self.items: list[dict[str, str]] = told["items"]
        self.tenant, self.key = told["tenant"], told["key"]
        self._person = told["username"], told["password"]
        house.rows("DELETE FROM chaos_ledger")

    def log_in(self, web: Callable[[], Web]) -> None:
        self._staff = Staff(web, person=self._person)

    # -- while it breaks -------------------------------------------------------------------------------------------

    def approve(self, card: str) -> None:
        """As a person would: again when a page did not come or the press was refused, until the card is settled."""
        give_up = time.monotonic() + PRESS_SECONDS
        while time.monotonic() < give_up:
            with suppress(OSError, http.client.HTTPException):
                face = self._staff.face_of(card)
                if not face or self._staff.approve(card, face) < 400:
                    return
            time.sleep(0.3)

    def settle(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Approve what is still open, and wait until nothing is due any more. `meanwhile` is called at each look."""
        give_up, looks = time.monotonic() + REST_SECONDS, itertools.count()
        while self._restless() and time.monotonic() < give_up:
            meanwhile()
            if next(looks) % LOOKS_A_LEASE == 0:
                self.house.let_leases_run_out()
            for card in self.house.rows("SELECT id::text FROM approvals_card WHERE status IN ('open', 'created')"):
                self.approve(card["id"])
            time.sleep(3)

    def _restless(self) -> bool:
        return bool(self.due() or self.unfinished())

    # -- what became of it -----------------------------------------------------------------------------------------

    def due(self) -> list[dict[str, Any]]:
        """Recurring messages are due again and again, so this is empty for moments only."""
        return self.house.rows(
            "SELECT queue, kind, state, attempts, reason, available_at, leased_until FROM bus_queuemessage"
            " WHERE finished_at IS NULL AND available_at <= now()"
        )

    def unfinished(self) -> list[dict[str, Any]]:
        """Items that neither ended nor wait for a person."""
        return self.house.rows(
            "SELECT id::text, status, reason FROM work_workitem WHERE type = 'task' AND status <> ALL(%s)"
            " AND NOT (status = 'paused' AND EXISTS (SELECT FROM approvals_card WHERE subject_id = work_workitem.id))",
            list(FINAL),
        )

    def done(self) -> list[str]:
        return [row["id"] for row in self.house.rows("SELECT id::text FROM work_workitem WHERE status = 'done'")]

    def done_without_effect(self) -> list[str]:
        orders = {each["item"]: each["order"] for each in self.items}
        written = {row["key"] for row in self.house.rows("SELECT key FROM chaos_ledger")}
        return [item for item in self.done() if orders.get(item, "") not in written]

    def effects_that_happened_twice(self) -> list[dict[str, Any]]:
        return self.house.rows("SELECT key, count(*) FROM chaos_ledger GROUP BY key HAVING count(*) > 1")

    def ended_without_reason(self) -> list[dict[str, Any]]:
        return self.house.rows(
            "SELECT id::text FROM work_workitem WHERE status IN ('failed', 'stuck', 'blocked') AND reason = ''"
        )

    def cards_not_decided_once(self) -> list[dict[str, Any]]:
        rows = self.house.rows(
            "SELECT card.id::text, card.status, count(decision.id) AS decisions FROM approvals_card card"
            " LEFT JOIN approvals_decision decision ON decision.card_id = card.id"
            " WHERE card.id::text = ANY(%s) GROUP BY card.id, card.status",
            [each["card"] for each in self.items],
        )
        return [row for row in rows if (row["status"], row["decisions"]) != ("decided", 1)]

    def approvals_not_spent_once(self) -> list[dict[str, Any]]:
        twice = "SELECT token_nonce FROM approvals_tokenuse GROUP BY token_nonce HAVING count(*) <> 1"
        unspent = (
            "SELECT id::text FROM approvals_approvaltoken"
            " WHERE nonce NOT IN (SELECT token_nonce FROM approvals_tokenuse) AND scope <> 'standing'"
        )
        return [*self.house.rows(twice), *self.house.rows(unspent)]

    def audit_chain(self) -> str:
        """What `audit_verify` says of the tenant's chain: it begins with "ok " where the chain holds."""
        return self.house.manage("audit_verify", "--tenant", self.tenant).stdout
