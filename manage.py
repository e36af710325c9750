#!/usr/bin/env python
"""How is a command started? Addresses of the embedded servers stand in for DATABASE_URL and REDIS_URL nobody gave."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.dev")
    from silas_platform.up.environment import with_embedded_addresses

    os.environ.update(with_embedded_addresses(os.environ))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
