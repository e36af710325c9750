"""Publish a release, change shares, roll back, and set the company's rule. Inside a scope, one transaction each.

The deployment's row is locked first, so that numbers have no gaps and shares always add up to 100. `newest` is the
number of the newest release that the person saw: a decision on an older state is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.releases import rules
from apps.releases.enums import ReleaseStatus, SimulationOutcome, SimulationRule
from apps.releases.models import Release, ReleasePolicy
from apps.releases.queries import releases_of, simulation_rule
from apps.releases.schemas import Snapshot
from apps.releases.simulation_gate import outcome_of
from apps.releases.snapshots import take, with_served
from apps.tenants.models import Deployment
from apps.tenants.services import deployment_problems
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

SHORTEST_REASON = 10


def publish(
    deployment: Deployment,
    *,
    actor: str,
    sha256: str = "",
    share: int = rules.WHOLE,
    note: str = "",
    override_reason: str = "",
) -> Release:
    """Publish the working copy as the next release, for `share` percent of new conversations. `sha256` is the hash of
    the snapshot that the person saw.

    Raises `SilasError`: `release_changed` 409 when the snapshot is another by now, `release_unchanged` 409 when it is
    the newest live one's, `invalid_share` 422, `simulation_required` 409 when the company asks for a passed simulation
    of this snapshot and there is neither one nor an `override_reason` of 10 characters.
    """
    place = _locked(deployment)
    snapshot = take(place)
    if sha256 and sha256 != snapshot.sha256:
        raise SilasError(ErrorCode.RELEASE_CHANGED)
    live = _live(place)
    if live and live[-1].sha256 == snapshot.sha256:
        raise SilasError(ErrorCode.RELEASE_UNCHANGED)
    if not 1 <= share <= rules.WHOLE or (not live and share != rules.WHOLE):
        raise SilasError(ErrorCode.INVALID_SHARE)
    outcome = outcome_of(place, snapshot)
    reason = _override(outcome, override_reason)
    if share == rules.WHOLE:
        _end(live, ReleaseStatus.RETIRED)
    else:
        # The newest release is tried beside the one that most conversations have.
        main = max(live, key=lambda release: (release.share, -release.number))
        _end([release for release in live if release != main], ReleaseStatus.RETIRED)
        _set_share(main, rules.WHOLE - share)
    release = _create(place, snapshot, actor, share=share, note=note, simulation=outcome, override_reason=reason)
    if reason:
        record(AuditEvent.SIMULATION_OVERRIDDEN, actor=actor, subject=_subject(place), data={"number": release.number})
    return release


def change_share(deployment: Deployment, number: int, *, share: int, actor: str) -> Release:
    """Give a live release `share` percent of new conversations; the other live one gets the rest. At 0 the release ends
    for new conversations, at 100 the other does.

    Raises `SilasError`: `release_not_live` 409, `invalid_share` 422, also for a single live release.
    """
    place = _locked(deployment)
    live = _live(place)
    release = next((row for row in live if row.number == number), None)
    if release is None:
        raise SilasError(ErrorCode.RELEASE_NOT_LIVE)
    others = [row for row in live if row != release]
    if not 0 <= share <= rules.WHOLE or not others:
        raise SilasError(ErrorCode.INVALID_SHARE)
    before = release.share
    for row, percent in ((release, share), (others[0], rules.WHOLE - share)):
        if percent:
            _set_share(row, percent)
        else:
            _end([row], ReleaseStatus.RETIRED)
    data = {"number": number, "before": before, "after": share}
    record(AuditEvent.RELEASE_SHARE_CHANGED, actor=actor, subject=_subject(place), data=data)
    return release


def roll_back(deployment: Deployment, number: int, *, newest: int, actor: str) -> Release:
    """Publish the settings of a former release again, as the next release and for all conversations. Releases that were
    live are withdrawn: their conversations get the new one with their next message. The working copy is kept, and no
    simulation is asked for.

    Raises `SilasError`: `release_changed` 409 when there is a newer release than `newest`, `not_found` 404,
    `invalid_deployment` 400 when a model of the release no longer exists.
    """
    place = _locked(deployment)
    former = releases_of(place.pk).filter(number=number).first()
    if former is None:
        raise SilasError(ErrorCode.NOT_FOUND)
    if _newest(place) != newest:
        raise SilasError(ErrorCode.RELEASE_CHANGED)
    served = former.read_snapshot().served
    if problems := deployment_problems({"model_names": served.models}):
        raise SilasError(ErrorCode.INVALID_DEPLOYMENT, " ".join(problems.values()), extra={"fields": problems})
    _end(_live(place), ReleaseStatus.WITHDRAWN)
    snapshot = with_served(place, served)
    outcome = outcome_of(place, snapshot)
    release = _create(place, snapshot, actor, share=rules.WHOLE, restores=number, simulation=outcome)
    data = {"number": release.number, "restores": number}
    record(AuditEvent.RELEASE_ROLLED_BACK, actor=actor, subject=_subject(place), data=data)
    return release


def set_simulation_rule(rule: SimulationRule, *, actor: str) -> None:
    """Set whether publishing asks for a passed simulation."""
    ReleasePolicy.objects.bulk_create([ReleasePolicy()], ignore_conflicts=True)
    policy = ReleasePolicy.objects.select_for_update(no_key=True).get()
    before, policy.simulations = policy.simulations, rule
    if before == rule:
        return
    policy.save(update_fields=["simulations"])
    data = {"before": before, "after": rule.value}
    record(AuditEvent.RELEASE_RULE_CHANGED, actor=actor, subject=f"tenant:{policy.tenant_id}", data=data)


def _override(outcome: SimulationOutcome, reason: str) -> str:
    """The reason where it was needed, else ""."""
    if simulation_rule() != SimulationRule.REQUIRE or outcome == SimulationOutcome.PASSED:
        return ""
    reason = " ".join(reason.split())[:300]
    if len(reason) < SHORTEST_REASON:
        raise SilasError(ErrorCode.SIMULATION_REQUIRED)
    return reason


def _locked(deployment: Deployment) -> Deployment:
    return Deployment.objects.select_for_update(no_key=True, of=("self",)).get(pk=deployment.pk)


def _live(deployment: Deployment) -> list[Release]:
    """Oldest first."""
    return list(releases_of(deployment.pk).filter(status=ReleaseStatus.LIVE).order_by("number"))


def _newest(deployment: Deployment) -> int:
    return releases_of(deployment.pk).aggregate(newest=Max("number"))["newest"] or 0


def _end(releases: Sequence[Release], status: ReleaseStatus) -> None:
    for release in releases:
        release.status, release.share = status, 0
        release.save(update_fields=["status", "share"])


def _set_share(release: Release, share: int) -> None:
    release.share = share
    release.save(update_fields=["share"])


def _create(deployment: Deployment, snapshot: Snapshot, actor: str, **fields: object) -> Release:
    release = Release(
        deployment=deployment,
        number=_newest(deployment) + 1,
        snapshot=snapshot.as_json(),
        sha256=snapshot.sha256,
        created_by=actor,
        **fields,
    )
    release.save(force_insert=True)
    data = {"number": release.number, "share": release.share, "sha256": release.sha256}
    if not release.restores:
        record(AuditEvent.RELEASE_PUBLISHED, actor=actor, subject=_subject(deployment), data=data)
    return release


def _subject(deployment: Deployment) -> str:
    return f"deployment:{deployment.pk}"
