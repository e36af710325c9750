"""Ask for a rating in a channel, once for each conversation that staff resolved there, where the chatbot offers one.

A pressed option counts as long as a rating may be given; a typed number or label only directly after the question.
"""

from __future__ import annotations

import re
from datetime import timedelta

from apps.bus.enums import Kind
from apps.bus.services import enqueue
from apps.messengers.models import ChannelThread
from apps.messengers.ports import Inbound, OutboundOption
from apps.sessions.models import ChatSession
from apps.visitors.enums import RatingScale
from apps.visitors.offers import offers_of
from apps.visitors.ratings import rating_of
from kernel.clock import now

# A person who wrote longer ago is not asked; a provider may allow no message then either.
ASKED_WITHIN = timedelta(hours=23)
# In a thread's reference: up to which entry the conversation went when the question was sent.
ASKED_AT = "rating_asked_at"
_CHOICE = re.compile(r"rate:([1-5])")
_LABELS = {
    RatingScale.STARS: {score: "★" * score for score in range(1, 6)},
    RatingScale.THUMBS: {5: "👍", 1: "👎"},
}


def ask_rating(session: ChatSession) -> None:
    """Enqueue the question for the thread where the visitor wrote last. In the transaction that resolves it."""
    if not session.channel or not offers_of(session.deployment_id).rating or rating_of(session.pk):
        return
    threads = ChannelThread.objects.filter(session_id=session.pk, opted_out_at=None, follows_widget=False)
    newest = threads.filter(last_received_at__gte=now() - ASKED_WITHIN).order_by("-last_received_at")
    if thread_id := newest.values_list("pk", flat=True).first():
        payload = {"notice": "rating", "seq": session.seq}
        enqueue(Kind.CHANNEL_DELIVERY, scope_id=thread_id, payload=payload, message_id=f"rating:{session.pk}")


def rating_options(scale: str) -> list[OutboundOption]:
    """The scores as answers to press; none where no rating is asked for."""
    labels = _LABELS[RatingScale(scale)] if scale else {}
    return [OutboundOption(label, f"rate:{score}") for score, label in labels.items()]


def score_of(thread: ChannelThread, message: Inbound) -> int | None:
    """The score that a message gives; None for a message of its own."""
    if pressed := _CHOICE.fullmatch(message.choice):
        return int(pressed[1])
    session = thread.session
    if message.choice or session is None or thread.reference.get(ASKED_AT) != session.seq:
        return None
    typed = message.text.strip().removesuffix(".").removesuffix("\ufe0f")
    options = rating_options(offers_of(session.deployment_id).rating)
    chosen = [each for number, each in enumerate(options, 1) if typed in (str(number), each.label)]
    return int(chosen[0].choice.removeprefix("rate:")) if chosen else None
