"""What the model of a request saw, as ids, counts and levels, in the shape of a turn's record (`sessions.window`)."""

from __future__ import annotations

from typing import Any

from apps.copilot.runs import Job
from apps.copilot.schemas import Draft
from apps.sessions import window
from llm.context.budget import count_tokens
from llm.context.enums import Kind, Zone

PROFILE = "assistance"


def record_of(job: Job, draft: Draft) -> dict[str, object]:
    """Empty where no text was read. Texts are counted and named, never kept."""
    seen = set(draft.seqs)
    messages = [
        _item(window.id_of_entry(one), Kind.MESSAGE.value, one.shown, one.taint) for one in job.said if one.seq in seen
    ]
    passages = [_item(window.id_of_passage(one), Kind.MEMORY.value, one.quote, "external") for one in draft.passages]
    if not messages and not passages and not draft.model_name:
        return {}
    zones = {zone.value: _zone([]) for zone in Zone}
    zones[Zone.CHRONICLE.value], zones[Zone.MEMORY.value] = _zone(messages), _zone(passages)
    zones[Zone.WORKSPACE.value]["tokens"] += count_tokens(job.draft or job.request.text)
    return {
        "profile": PROFILE,
        "prompt": draft.prompt,
        "level": job.access.grant.level,
        "release": job.settings.number,
        "zones": zones,
        "headroom": 0,
        "evicted": [],
        "evicted_count": 0,
    }


def _item(ctx_id: str, kind: str, text: str, taint: str) -> dict[str, object]:
    return {"id": ctx_id, "kind": kind, "tokens": count_tokens(text), "taint": taint}


def _zone(items: list[dict[str, Any]]) -> dict[str, Any]:
    tokens = sum(each["tokens"] for each in items)
    return {"tokens": tokens, "room": tokens, "count": len(items), "items": items}
