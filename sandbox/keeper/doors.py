"""The proxy's listening socket inside a run that may reach named hosts. The harness accepts its connections.

A socket belongs to the network it was made in, whichever process holds it. So it is made here, on the loopback of the
run's own empty network, and passed to the harness, which accepts and decides (`sandbox.proxy`): no helper
process and no socket path exist inside, and when the harness closes the socket, no connection is answered any more.
"""

from __future__ import annotations

import fcntl
import socket
import struct

PORT = 3128
_WAITING = 64
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def hand_out(line: int) -> None:
    """Send the socket over `line` and close it. Called in the run's network, before the command starts."""
    with socket.socket(fileno=line) as to_harness, socket.socket() as door:
        _raise_loopback(door)
        door.bind(("127.0.0.1", PORT))
        door.listen(_WAITING)
        socket.send_fds(to_harness, [b"door"], [door.fileno()])


def _raise_loopback(door: socket.socket) -> None:
    request = struct.pack("16sh22x", b"lo", 0)
    (flags,) = struct.unpack_from("h", fcntl.ioctl(door, _SIOCGIFFLAGS, request), 16)
    if not flags & _IFF_UP:
        fcntl.ioctl(door, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))
