"""Settings of the tests, with the room in the version that the environment names."""

import os

from silas_platform.settings.test import *

INSTALLED_APPS = [*INSTALLED_APPS, f"tests.faults.versions.{os.environ['SILAS_TEST_VERSION']}"]
