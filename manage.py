#!/usr/bin/env python
"""Start a command. On one's own machine the embedded servers' addresses and our own keys stand in for
those that were not given, so that every command speaks to what `manage.py up` runs."""

import os
import sys

OWN_MACHINE = "silas_platform.settings.local"


def main() -> None:
    if os.environ.setdefault("DJANGO_SETTINGS_MODULE", OWN_MACHINE) == OWN_MACHINE:
        _command_on_own_machine()
    else:
        _command()


def _command_on_own_machine() -> None:
    from silas_platform.up.environment import StartRefused, with_embedded_addresses, with_keys
    from silas_platform.up.roles import with_bound_roles
    from silas_platform.up.run import borrowed_servers

    try:
        told = with_bound_roles(os.environ, make=sys.argv[1:2] == ["up"])
        told = with_keys(with_embedded_addresses(told))
        os.environ.clear()
        os.environ.update(told)
        with borrowed_servers(told, sys.argv[1:]):
            _command()
    except StartRefused as refused:
        sys.exit(str(refused))


def _command() -> None:
    if sys.argv[1:2] == ["up"]:  # the supervisor does without Django and its memory
        from silas_platform.up.run import main as up

        up(sys.argv[2:])
        return
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
