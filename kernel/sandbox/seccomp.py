"""Which system calls a sandboxed process may not make: a small classic-BPF filter, built here, loaded inside.

Denied are the calls that make new namespaces or mounts, look into other processes, reach kernel subsystems a script has
no use for, or take memory that neither the address-space limit nor the process sum can see (memfd, System V).
"""

import platform
import struct
from typing import NamedTuple

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_EPERM, _ENOSYS = 1, 38
_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_X32_BIT = 0x40000000
# NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET: a plain fork or thread sets none of them.
_CLONE_NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000


class Machine(NamedTuple):
    """System call numbers of one architecture."""

    audit_arch: int
    clone: int
    denied: tuple[int, ...]


# The same on every architecture: io_uring_*, open_tree .. fspick, pidfd_getfd, mount_setattr, memfd_secret.
_CLONE3 = 435
_COMMON = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447)

MACHINES = {
    # ptrace unshare setns mount umount2 pivot_root chroot swapon swapoff reboot init_module delete_module finit_module
    # kexec_load kexec_file_load add_key request_key keyctl bpf perf_event_open userfaultfd memfd_create shmget shmat
    # shmctl semget msgget mq_open process_vm_readv process_vm_writev kcmp open_by_handle_at acct personality
    "x86_64": Machine(
        0xC000003E,
        56,
        (101, 272, 308, 165, 166, 155, 161, 167, 168, 169, 175, 176, 313, 246, 320, 248, 249, 250, 321, 298, 323, 319)
        + (29, 30, 31, 64, 68, 240, 310, 311, 312, 304, 163, 135),
    ),
    "aarch64": Machine(
        0xC00000B7,
        220,
        (117, 97, 268, 40, 39, 41, 51, 224, 225, 142, 105, 106, 273, 104, 294, 217, 218, 219, 280, 241, 282, 279)
        + (194, 196, 195, 190, 186, 180, 270, 271, 272, 265, 89, 92),
    ),
}


def build_filter(machine_name: str | None = None) -> bytes:
    """The filter as an array of `struct sock_filter`, or b"" on an architecture whose numbers we do not know."""
    machine = MACHINES.get(machine_name or platform.machine())
    return b"".join(struct.pack("HBBI", *step) for step in _program(machine)) if machine else b""


def _program(machine: Machine) -> list[tuple[int, int, int, int]]:
    """Straight-line tests; each hit returns at once, so no jump is longer than one instruction."""
    steps = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQ, 1, 0, machine.audit_arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    steps += _refuse_if(_JUMP_GE, _X32_BIT, _EPERM)
    steps += _refuse_if(_JUMP_EQ, _CLONE3, _ENOSYS)
    for number in machine.denied + _COMMON:
        steps += _refuse_if(_JUMP_EQ, number, _EPERM)
    steps += [(_JUMP_EQ, 1, 0, machine.clone), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    steps += _refuse_if(_JUMP_SET, _CLONE_NEW, _EPERM)
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _refuse_if(test: int, value: int, errno: int) -> list[tuple[int, int, int, int]]:
    return [(test, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno)]
