"""The tenant's documents: read, split, stored in versions, and searched."""
