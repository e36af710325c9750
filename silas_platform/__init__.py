"""The composition. Whatever is imported of it brings the Celery application, and a garbage collector with patience."""

import gc

from silas_platform.celery import app as celery_app

__all__ = ["celery_app"]

# A start makes 300,000 objects that stay. Looked through every 700 for garbage, they make it a fifth longer.
gc.set_threshold(100_000)
