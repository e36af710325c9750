"""What a validator answers."""

from types import SimpleNamespace


def PassResult():
    return SimpleNamespace(passed=True)


def FailResult(error_message):
    return SimpleNamespace(passed=False)
