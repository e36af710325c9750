"""REST API of skills, for owners and their API keys: `skills`, `packages` with their publishers, and `drafts`."""
