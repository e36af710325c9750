"""Signed packages, which carry a skill from one installation to another as one file (ADR 73).

`archive` makes and reads its bytes, `keys` signs, `services` exports and receives.
"""
