"""Limits on how fast and how much visitors may send, start and hold open."""
