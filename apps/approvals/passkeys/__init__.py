"""Passkeys: who is present when something of high risk is approved."""
