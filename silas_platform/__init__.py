"""The composition: settings, URLs, the processes and what they share. Importing it loads neither Django nor Celery."""

import gc

# Starting up creates 250,000 objects that stay; a collection every 700 allocations makes it slower, and one every
# 100,000 leaves 4 MB of rubbish in each process.
gc.set_threshold(20_000)

# The release, as in pyproject.toml; every `migrate` notes it in the database.
__version__ = "0.1.0"
