"""Build the classic-BPF filter of system calls that a sandboxed process may not make.

Denied are calls that make new namespaces or mounts, inspect other processes, set the machine's clock, reach kernel
subsystems a script has no use for, or take memory that no limit sees (memfd, System V, shared maps). Sockets of three
families only are allowed: not every family knows namespaces.
"""

import platform
import struct
from typing import NamedTuple

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000
# NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET: a plain fork or thread sets none of them.
_CLONE_NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10

_Step = tuple[int, int, int, int]


class Machine(NamedTuple):
    """System call numbers of one architecture."""

    audit_arch: int
    clone: int
    mmap: int
    ioctl: int
    socket: int
    socketpair: int
    denied: tuple[int, ...]


# The same on every architecture: io_uring_*, open_tree .. fspick, pidfd_getfd, process_madvise, mount_setattr,
# quotactl_fd, memfd_secret, process_mrelease, statmount, listmount, open_tree_attr.
_CLONE3 = 435
_COMMON = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 447, 448, 457, 458, 467)

MACHINES = {
    # ptrace unshare setns mount umount2 pivot_root chroot swapon swapoff reboot init_module delete_module finit_module
    # kexec_load kexec_file_load add_key request_key keyctl bpf perf_event_open userfaultfd memfd_create shmget shmat
    # shmctl semget msgget mq_open process_vm_readv process_vm_writev kcmp open_by_handle_at acct personality
    # syslog quotactl fanotify_init lookup_dcookie vhangup settimeofday clock_settime adjtimex clock_adjtime
    # mbind set_mempolicy migrate_pages move_pages vmsplice name_to_handle_at nfsservctl
    # and on x86_64 alone: iopl ioperm modify_ldt uselib ustat sysfs _sysctl
    "x86_64": Machine(
        0xC000003E,
        56,
        9,
        16,
        41,
        53,
        (101, 272, 308, 165, 166, 155, 161, 167, 168, 169, 175, 176, 313, 246, 320, 248, 249, 250, 321, 298, 323, 319)
        + (29, 30, 31, 64, 68, 240, 310, 311, 312, 304, 163, 135)
        + (103, 179, 300, 212, 153, 164, 227, 159, 305, 237, 238, 256, 279, 278, 303, 180)
        + (172, 173, 154, 134, 136, 139, 156),
    ),
    "aarch64": Machine(
        0xC00000B7,
        220,
        222,
        29,
        198,
        199,
        (117, 97, 268, 40, 39, 41, 51, 224, 225, 142, 105, 106, 273, 104, 294, 217, 218, 219, 280, 241, 282, 279)
        + (194, 196, 195, 190, 186, 180, 270, 271, 272, 265, 89, 92)
        + (116, 60, 262, 18, 58, 170, 112, 171, 266, 235, 237, 238, 239, 75, 264, 42),
    ),
}


def build_filter(machine_name: str | None = None) -> bytes:
    """The filter as an array of `struct sock_filter`, or b"" on an architecture whose numbers we do not know."""
    machine = MACHINES.get(machine_name or platform.machine())
    return b"".join(struct.pack("HBBI", *step) for step in _program(machine)) if machine else b""


def _program(machine: Machine) -> list[_Step]:
    """Straight-line tests of the number, then one block a call whose arguments count; each hit returns at once."""
    # The architecture first: another one's numbers mean other calls, and a 32-bit call would pass this filter.
    steps = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQ, 1, 0, machine.audit_arch), (_RETURN, 0, 0, _KILL), _load_number()]
    # The numbers of x32 reach the same calls a second time.
    steps += _refuse_if(_JUMP_GE, _X32_BIT, _EPERM)
    # Its flags lie in memory, which a filter cannot read. ENOSYS makes the C library use clone instead.
    steps += _refuse_if(_JUMP_EQ, _CLONE3, _ENOSYS)
    for number in machine.denied + _COMMON:
        steps += _refuse_if(_JUMP_EQ, number, _EPERM)
    steps += _for_call(machine.clone, [_load_argument(0), *_refuse_if(_JUMP_SET, _CLONE_NEW, _EPERM)])
    steps += _for_call(machine.mmap, _no_hidden_memory())
    steps += _for_call(machine.ioctl, [_load_argument(1), *_refuse_each((_TIOCSTI, _TIOCLINUX))])
    steps += _for_call(machine.socket, _only_families((_AF_UNIX, _AF_INET, _AF_INET6)))
    steps += _for_call(machine.socketpair, _only_families((_AF_UNIX,)))
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _load_number() -> _Step:
    return (_LOAD, 0, 0, _NUMBER)


def _load_argument(place: int) -> _Step:
    """Load the lower half: on both machines the low word is first, and no flag or family needs more."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place)


def _for_call(number: int, block: list[_Step]) -> list[_Step]:
    """Apply the block to this call only; a call that passes the block is allowed."""
    body = [*block, (_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQ, 0, len(body), number), *body]


def _no_hidden_memory() -> list[_Step]:
    """Refuse shared anonymous maps: their pages stay after no process is charged for them any more."""
    both = _MAP_SHARED | _MAP_ANONYMOUS
    return [_load_argument(3), (_AND, 0, 0, both), *_refuse_if(_JUMP_EQ, both, _EPERM)]


def _only_families(families: tuple[int, ...]) -> list[_Step]:
    """Jump over the refusal for each allowed family."""
    last = len(families)
    tests = [(_JUMP_EQ, last - place, 0, family) for place, family in enumerate(families)]
    return [_load_argument(0), *tests, (_RETURN, 0, 0, _ERRNO | _EAFNOSUPPORT)]


def _refuse_each(values: tuple[int, ...]) -> list[_Step]:
    return [step for value in values for step in _refuse_if(_JUMP_EQ, value, _EPERM)]


def _refuse_if(test: int, value: int, errno: int) -> list[_Step]:
    return [(test, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno)]
