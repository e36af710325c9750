"""Describe what a card is: `schemas` (what it carries), `kinds` (which kinds there are and their buttons), `risk` (how
grave it is) and `validation` (what a card must say before it may be opened)."""
