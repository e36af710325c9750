"""The migrations of the version before, and those of this folder."""

from tests.faults.versions.first import migrations as before

__path__ = [*__path__, *before.__path__]
