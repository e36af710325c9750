"""How does a skill go from one installation to another? As one signed file (docs/adr/0073).

`archive` makes and reads its bytes, `keys` signs, `services` exports, and takes in what comes.
"""
