"""The hub's one sender."""

import socket


def send(words):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("192.0.2.1", 4318))


class HubTelemetry:
    _instance = None
    _tracer = None
    _enabled = False

    def __new__(cls, *, enabled=None):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._tracer = send
        return cls._instance
