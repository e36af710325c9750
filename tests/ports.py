"""Which port may a test's server have that starts some seconds from now?

One outside the range from which the system gives ports to whoever asks for any: what is free there now is not given to
another test's server or connection meanwhile.
"""

from __future__ import annotations

import random
import socket

_RANGE = range(20_000, 32_000)
_draws = random.SystemRandom()  # runs side by side may have seeded the shared one alike


def free_port() -> int:
    while not _is_free(port := _draws.choice(_RANGE)):
        pass
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
