"""Readers of the places that a knowledge source may be in, one module each, behind the port of `port`."""
