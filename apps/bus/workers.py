"""The kinds of worker. Beat names them too, and loads no Django."""

from enum import StrEnum


class Worker(StrEnum):
    """The kinds of Celery worker, each with a Celery queue of the same name.

    `trusted` holds the signing key and never touches bytes from outside; `work` runs approved work, `parse` reads
    documents and websites, `upkeep` does checks and clean-up, all three without the signing key.
    """

    TRUSTED = "trusted"
    WORK = "work"
    PARSE = "parse"
    UPKEEP = "upkeep"
