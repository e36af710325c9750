"""Which button did somebody press, and what came with it? Checked against the card, then decided or asked anew.

Always holds: a card takes only the answers it offers; what is ticked or worded anew is no yes to anything: the same
question comes back about exactly that, and needs a yes of its own (spec 5.2.4, 5.11). Called by the faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from apps.approvals import kinds, payloads, queries
from apps.approvals.enums import ApprovalVerdict, CardKind
from apps.approvals.models import Card, Decision
from apps.approvals.schemas import Refused
from apps.approvals.services.cards import decide_card
from apps.approvals.services.editing import edit_card, text_of
from kernel.errors import SilasError
from kernel.unicode_safety import truncate

MOST_WORDS, MOST_DRAFT = 2000, 20_000


@dataclass(frozen=True)
class Words:
    """What came with the press: free text, the ticked items of a batch, a draft worded anew.

    `ticked`: what a face that shows boxes had ticked at a yes to the whole batch; None for one without boxes.
    """

    freetext: str = ""
    selected: Sequence[str] = ()
    text: str = ""
    ticked: Sequence[str] | None = None


def answer_card(
    card_id: UUID, *, user: Any, choice: str, face: str, words: Words | None = None, step_up: str = ""
) -> Decision | Card | Refused | None:
    """Answer with one of the card's own choices (`kinds.choices_of`). `face`: what the person's page showed
    (`queries.face_hash`); a press from a page that showed anything else decides nothing.

    A decision settles it and holds `said`: the choice and, where the card takes it, `freetext`. The card that took
    its place, when items were left out or words changed, or when the records that it shows have changed. None while
    more people have to say yes. `Refused` when the person's passkey was not believed. Raises `SilasError`:
    `card_changed` 409, `choice_unknown`, `selection_unfit`, `ticks_unfit` 409, `text_missing`, `edit_unfit`,
    `freetext_too_long`, `freetext_not_wanted`, and what `decide_card` and `edit_card` raise.
    """
    card, said = queries.card(card_id), words or Words()
    chosen = kinds.choice_of(card.kind, card.payload, choice)
    if card.is_open:
        queries.require_shown(card, face)
    if chosen.value == "edit_selection":
        return _narrow(card, user, said.selected)
    if chosen.value == "edit":
        return _reword(card, user, said.text)
    if chosen.verdict == ApprovalVerdict.APPROVED:
        _require_whole(card, said.ticked)
    freetext = {"freetext": _freetext(card, said.freetext.strip())} if said.freetext.strip() else {}
    answer = {"choice": chosen.value, **freetext}
    return decide_card(card_id, user=user, verdict=chosen.verdict, said=answer, step_up=step_up, face=face)


def _require_whole(card: Card, ticked: Sequence[str] | None) -> None:
    """Whoever sees boxes and says yes to all of a batch has ticked all of it (spec 0.5.4)."""
    if card.kind != CardKind.BATCH_REVIEW or ticked is None:
        return
    left = len(set(card.payload["item_ids"]) - set(ticked))
    if left:
        lines = "1 line is" if left == 1 else f"{left} lines are"
        message = f"{lines} not ticked. Approve only the ticked ones, or look at the rest and tick it too."
        raise SilasError("ticks_unfit", message, status=409)


def _narrow(card: Card, user: Any, selected: Sequence[str]) -> Card:
    """The same batch with a strict part of its items, in the order in which they were picked (spec 5.2.4 step 5)."""
    bound, kept = card.payload["item_ids"], list(dict.fromkeys(selected))
    if not kept or len(kept) == len(bound) or not set(kept) <= set(bound):
        raise SilasError("selection_unfit", "Tick some of the items, but not all of them.")
    count = f"{len(kept)} of {len(bound)}"
    lines = {item["item_id"]: item for item in card.body["items"]}
    items = [{**lines[item_id], "unusual": False} for item_id in kept]
    payload = payloads.batch_payload(goal_id=card.payload["goal_id"], action=card.payload["action"], item_ids=kept)
    text = replace(
        text_of(card),
        intent=truncate(f"Only {count}: {card.intent}", 300),
        affected=f"{count} items",
        consequence={**card.consequence, "approve": f"Do it for these {len(kept)}"},
    )
    reads = [each for each in card.reads if each.get("item") in kept]
    return edit_card(card.pk, user=user, payload=payload, text=text, body={**card.body, "items": items}, reads=reads)


def _reword(card: Card, user: Any, text: str) -> Card:
    """The same call with other words to send."""
    if not text.strip() or len(text) > MOST_DRAFT:
        raise SilasError("text_missing", "Write what should be sent.")
    draft, text = card.body["draft"], text.replace("\r\n", "\n")
    if text == draft:
        raise SilasError("edit_unfit", "Nothing was changed.")
    payload = _replaced(card.payload, draft, text)
    return edit_card(card.pk, user=user, payload=payload, body={**card.body, "draft": text})


def _replaced(payload: dict[str, Any], draft: str, text: str) -> dict[str, Any]:
    """The payload with the new words wherever a call would have sent the old ones."""
    changed = dict(payload)
    if "args" in changed:
        changed["args"] = {name: text if value == draft else value for name, value in changed["args"].items()}
    return changed


def _freetext(card: Card, text: str) -> str:
    if card.kind != CardKind.DRAFT_REVIEW and not card.payload.get("allow_freetext"):
        raise SilasError("freetext_not_wanted", "This card takes no free text.")
    if len(text) > MOST_WORDS:
        raise SilasError("freetext_too_long", f"At most {MOST_WORDS} characters fit here.")
    return text
