"""The figures about conversations as tiles, charts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from apps.console.charts import Columns, columns
from apps.console.templatetags.console import percent, seconds, thousands
from apps.inbox.enums import SlaTarget
from apps.inbox.insights import ConversationFigures, SlaFigures
from apps.sessions.insights import HandOff
from apps.visitors.ratings import RatingFigures


@dataclass(frozen=True)
class Tile:
    """One number with its title and a note."""

    title: str
    value: str
    note: str = ""


_REASONS = {
    "": gettext_lazy("No reason recorded"),
    "asked": gettext_lazy("Requested by the visitor"),
    "unanswered": gettext_lazy("An answer failed"),
    "work": gettext_lazy("Work failed"),
}


def tiles(figures: ConversationFigures) -> list[Tile]:
    turns, ratings = figures.turns, figures.ratings
    return [
        Tile(_("Conversations"), thousands(figures.conversations), _number_of_messages(figures.messages)),
        Tile(
            _("Resolved by the bot"),
            _share(figures.resolved_by_bot),
            _("{number} handed over to a person").format(number=thousands(figures.with_person)),
        ),
        Tile(_("Answered"), thousands(turns.answered), _out_of_messages(turns.total)),
        Tile(_("With sources"), _share(turns.cited_share), _("of answers cite a source")),
        Tile(_("Blocked by gates"), thousands(turns.refused), ngettext("message", "messages", turns.refused)),
        Tile(_("Discarded"), thousands(turns.suppressed), _("answers, because a person took over")),
        Tile(_("Failed"), thousands(turns.failed), _("messages without an answer")),
        Tile(_("Response time (median)"), _time(turns.p50), _("half of the answers were faster")),
        Tile(
            _("Response time (p95)"),
            _time(turns.p95),
            # The percent sign is text: xgettext:no-python-format
            _("95 % of the answers were faster"),
        ),
        Tile(
            _("Rating"),
            _("none yet") if ratings.mean is None else number_format(ratings.mean, 1),
            _rating_note(ratings),
        ),
        *(_sla_tile(one) for one in figures.sla),
    ]


_SLA_TITLES = {
    SlaTarget.FIRST_REPLY: gettext_lazy("First reply in time"),
    SlaTarget.NEXT_REPLY: gettext_lazy("Next reply in time"),
    SlaTarget.RESOLUTION: gettext_lazy("Resolution in time"),
}


def _sla_tile(figures: SlaFigures) -> Tile:
    total = figures.met + figures.missed
    note = _("{met} of {total}, {missed} missed").format(
        met=thousands(figures.met), total=thousands(total), missed=thousands(figures.missed)
    )
    return Tile(str(_SLA_TITLES[figures.target]), percent(figures.met / total), note)


def _number_of_messages(number: int) -> str:
    return ngettext("{number} message", "{number} messages", number).format(number=thousands(number))


def _out_of_messages(number: int) -> str:
    return ngettext("of {number} message", "of {number} messages", number).format(number=thousands(number))


def _rating_note(ratings: RatingFigures) -> str:
    if ratings.mean is None:
        return ""
    return ngettext(
        "of 5, {number} rating, {comments} with comments",
        "of 5, {number} ratings, {comments} with comments",
        ratings.count,
    ).format(number=thousands(ratings.count), comments=thousands(ratings.comments))


def daily_chart(figures: ConversationFigures) -> Columns:
    """Return the chart of conversations per day, with those handed over to a person darker."""
    names = [day_name(day.day) for day in figures.daily]
    return columns(names, [day.conversations for day in figures.daily], [day.with_person for day in figures.daily])


def reasons(figures: ConversationFigures) -> list[tuple[str, HandOff, str]]:
    """Return the handover reasons in words, with the median wait for a person."""
    return [(reason_in_words(row.because), row, _time(row.median)) for row in figures.hand_offs]


def reason_in_words(code: str) -> str:
    if code.startswith("gate:"):
        return _("The gate {name}").format(name=code.removeprefix("gate:").replace("_", " "))
    return str(_REASONS.get(code, code.replace("_", " ").capitalize()))


def day_name(day: date) -> str:
    return date_format(day, pgettext("format of a day without the year", "j M"))


def rows(figures: ConversationFigures) -> list[tuple[str, str, object]]:
    """Return all figures as (section, name, value), for the CSV file, whose words are English in every language."""
    turns = figures.turns
    daily = [
        (f"{section} a day", day.day.isoformat(), getattr(day, name))
        for section, name in (
            ("Conversations", "conversations"),
            ("Messages", "messages"),
            ("With a person", "with_person"),
        )
        for day in figures.daily
    ]
    ends = ("total", "answered", "cited", "refused", "suppressed", "stopped", "failed", "p50", "p95")
    outcomes = [("Messages", name, getattr(turns, name)) for name in ends]
    handed = [
        (f"Hand-offs, {name}", reason_in_words(row.because), value)
        for row in figures.hand_offs
        for name, value in (("wanted", row.wanted), ("answered", row.answered), ("median seconds", row.median))
    ]
    acts = ("blocked", "asked", "rewrote")
    gates = [(f"Gates, {name}", row.gate, getattr(row, name)) for row in figures.gates for name in acts]
    rated = [("Ratings", f"{score} of 5", figures.ratings.by_score.get(score, 0)) for score in range(1, 6)]
    sla = [(f"SLA, {name}", one.target.value, getattr(one, name)) for one in figures.sla for name in ("met", "missed")]
    return [*daily, *outcomes, *handed, *gates, *rated, ("Ratings", "mean", figures.ratings.mean), *sla]


def _share(share: float | None) -> str:
    return _("none yet") if share is None else percent(share)


def _time(number: float | None) -> str:
    return _("none yet") if number is None else seconds(number)
