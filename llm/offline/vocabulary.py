"""English stop words, synonyms, and verbs that ask for something to be done. Data only."""

from __future__ import annotations

STOP = frozenset(
    """
    a about actually after again against all also am an and another any anything are as ask asking at be because
    been before being but by can could dear did do does doing done dont during else ever every for from get
    getting give given go going good got had has have having hello here hey hi how however i id if ill im in
    into is isnt it its ive just kindly know let lets like look looking make many may me might mine more most
    much must my myself need needs no not now of off ok okay on one only onto or other our out over own per
    please put question quick really regarding s same say see shall should show since so some someone something
    still such sure t take tell than thank thanks that thats the their them then there these they thing things
    this those to too try up upon us use very via want wanted wants was way we well were what whats when where
    whether which while who whom whose why will wish with wonder wondering would yes yet you your yours
    """.split()  # noqa: SIM905 (a list of words is read as words)
)

# Words that make a sentence fit better when it has them, and no worse when it has not.
SOFT = frozenset(("long", "often", "soon", "late", "far", "big", "today", "tomorrow", "night", "last", "new"))

NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fourteen|twenty|thirty"
TIMES = "minutes?|hours?|days?|weeks?|months?|years?|o'clock|am|pm"

# One line for each meaning; the forms of a word need not be listed.
SAME = (
    "telephone phone",
    "bicycle bike cycle",
    "car vehicle automobile auto",
    "luggage baggage suitcase",
    "theft stolen steal stole thief robbed",
    "home house",
    "flat apartment",
    "price cost fee charge",
    "pay paid payment",
    "cancel terminate",
    "delivery deliver shipping shipment ship",
    "parcel package",
    "buy bought purchase",
    "shop store",
    "damaged damage broken broke defective faulty",
    "expire valid validity",
    "illness ill sick",
    "begin start",
    "reimburse reimbursement repay",
    "complaint complain",
    "abroad overseas foreign",
    "holiday vacation",
    "journey trip travel",
    "insured insure insurance",
    "mobile cellphone smartphone",
    "doctor physician",
    "child children kid kids",
)

# A message with one of these wants something done; a tool that does not know the word does not do it.
ACTIONS = """cancel change close complain delete downgrade exchange pay remove renew replace return stop transfer update
    upgrade"""
