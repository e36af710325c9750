"""Linux system calls that Python's standard library does not wrap, and their constants."""

from __future__ import annotations

import ctypes
import os
import struct

LIBC = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def prctl(option: int, first: int = 0, second: bytes | int = 0) -> int:
    return int(LIBC.prctl(option, first, second, 0, 0))


def unshare(namespaces: int, *, as_user: int | None = None) -> None:
    """A new user namespace knows our own user and group alone, there called `as_user` (else as here)."""
    user, group = os.geteuid(), os.getegid()
    checked(LIBC.unshare(namespaces), "unshare")
    if namespaces & CLONE_NEWUSER:
        inside = (user, group) if as_user is None else (as_user, as_user)
        # Without root the kernel takes a map of groups only after this (user_namespaces(7)).
        _map("setgroups", "deny")
        _map("uid_map", f"{inside[0]} {user} 1")
        _map("gid_map", f"{inside[1]} {group} 1")


def _map(name: str, content: str) -> None:
    with open(f"/proc/self/{name}", "w") as handle:
        handle.write(content)


def enter(process: int, namespaces: int) -> None:
    """Join the namespaces of the process behind a pidfd; the process namespace takes hold of children only."""
    checked(LIBC.setns(process, namespaces), "setns")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str = "") -> None:
    encoded = [None if part is None else os.fsencode(part) for part in (source, target, kind)]
    checked(LIBC.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def unmount(target: str) -> None:
    checked(LIBC.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def restrict(target: str, attributes: int, recursive: bool = True) -> None:
    """mount_setattr(2): make a mount, and what is mounted below it, read-only, nosuid, nodev."""
    attr = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    result = LIBC.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, attr, len(attr))
    checked(result, f"mount_setattr {target}")


def pivot_root(new: str, old: str) -> None:
    number = _SYS_PIVOT_ROOT[os.uname().machine]
    checked(LIBC.syscall(number, os.fsencode(new), os.fsencode(old)), "pivot_root")
