"""Writes of the suggestions room. Everything here runs inside the caller's scope."""
