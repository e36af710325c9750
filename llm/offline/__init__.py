"""`builtin:grounded`: answers without a language model, or when one fails.

Deterministic: the same briefing gives the same words. It says only what a passage, a tool result or its fixed phrases
say, calls only tools of the briefing, and says plainly when it does not know (contract interfaces, demo data). It works
in English; `languages` translates its own sentences.
"""
