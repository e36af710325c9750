"""Signed packages, which carry a skill from one installation to another as one file.

`archive` makes and reads its bytes, `keys` signs, `services` exports and receives.
"""
