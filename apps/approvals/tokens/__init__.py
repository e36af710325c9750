"""Approvals: the signed tokens that one decision issues, what they bind, and their uses."""
