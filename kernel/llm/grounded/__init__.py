"""`builtin:grounded`: how do we answer without a language model, or when one fails?

Deterministic: the same briefing gives the same words. It says only what a passage, a tool result or its fixed phrases
say, calls only tools of the briefing, and tells plainly when it does not know (contract interfaces, demo data).
It thinks in English; `languages` puts its own sentences into German, French or Spanish.
"""
