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
SOFT = frozenset(
    """
    long often soon late far big today tomorrow yesterday night last new next already always usually normally happen
    first old
    """.split()  # noqa: SIM905 (a list of words is read as words)
)

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
    "exchange swap",
    "instalment installment",
    "sofa couch settee",
    "courier driver carrier",
    "email mail",
    "guarantee warranty",
    "abroad overseas foreign",
    "holiday vacation",
    "journey trip travel",
    "insured insure insurance",
    "mobile cellphone smartphone",
    "doctor physician",
    "child children kid kids",
)

# Words that stand for each other where the one that was asked for is in no document: of narrower and wider meaning, or
# of the same business. A word may be in several lines.
RELATED = (
    "furniture sofa table chair wardrobe bed desk cupboard shelf bookcase mattress bench",
    "clothes jumper jacket shirt trousers dress shoes coat",
    "lamp lantern light torch",
    "jewellery ring necklace watch valuables rolex",
    "contents belongings possessions stuff laptop computer tablet camera television tv",
    "thing something item article product goods stuff",
    "packaging box wrapping carton",
    "excess deductible",
    "courtesy replacement loan loaner rental hire substitute",
    "telephone call ring dial number hotline",
    "letter post mail postal write",
    "company business firm organisation employer office",
    "partner husband wife spouse girlfriend boyfriend",
    "relative mother father mum mom dad parent brother sister son daughter grandmother grandfather",
    "young teenager teen student learner",
    "luggage bag bags backpack rucksack",
    "injury injured hurt wound bleeding",
    "illness ill disease condition asthma diabetes cancer fever flu",
    "medical treatment hospital doctor surgery clinic ambulance medicine",
    "pregnancy pregnant baby expecting maternity",
    "bank account iban",
    "password pin code passcode",
    "duties customs tax import",
    "instalment parts split monthly",
    "voucher coupon promo discount code",
    "discount cheap cheaper save reduction bonus rebate",
    "premium expensive price increase",
    "present gift christmas xmas birthday",
    "break burglary burglar robbed intruder",
    "storm wind gale hurricane hail",
    "fire burn burned burnt flame blaze scorch",
    "lightning thunder thunderstorm",
    "rust rot rotten mould mold damp corrosion",
    "frost frozen froze freeze ice snow winter",
    "tyre tire brake wheel",
    "windscreen windshield glass window pane",
    "accident crash collision bump hit",
    "property wall fence gate",
    "appliance dishwasher washing boiler hose",
    "renewal renew extend prolong automatic",
    "refuse reject decline deny bounce fail",
    "disagree appeal object dispute unhappy dissatisfied satisfy happy",
    "assessor inspector surveyor expert handler",
    "exchange swap size colour color",
    "wash clean laundry rinse",
    "fetch collect pickup",
    "safe secure garage shed porch",
    "nobody absent away out",
    "journey flight flying plane airline trip",
    "departure flight train ferry",
    "delayed late overdue missed",
    "fast quick speed soon",
    "most maximum max biggest highest largest limit",
    "least minimum min lowest smallest",
    "raise increase more higher",
    "lower reduce decrease less",
    "cash money banknotes coins",
    "delete erase remove wipe",
    "data details information record",
    "keep store save hold retain",
    "alcohol drunk drinking beer wine",
    "passenger taxi uber lyft",
    "person human agent operator somebody",
    "empty unoccupied vacant",
    "move moving relocate",
    "name surname",
    "wallet apple google paypal",
    "notice cancel leave quit stop",
)

# A message with one of these wants something done; a tool that does not know the word does not do it.
ACTIONS = """cancel change close complain delete downgrade exchange pay remove renew replace return stop transfer update
    upgrade"""
