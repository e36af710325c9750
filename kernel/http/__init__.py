"""Outgoing HTTP that cannot reach internal addresses."""
