"""Cards: what a person is asked to decide, the answers, and what becomes of the card."""
