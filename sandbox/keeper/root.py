"""The root file system of a run, where no bubblewrap builds one: read-only parts of the host, one sized tmpfs.

Runs in process 1 of the new namespaces, before anything untrusted exists. The host's own root is detached at the end.
"""

from __future__ import annotations

import os

from .system import (
    ATTR_NODEV,
    ATTR_NOSUID,
    ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    mount,
    pivot_root,
    restrict,
    unmount,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .config import Root

_SCAFFOLD = "/tmp"  # noqa: S108 - only covered by the new root, never written to
_INODES = 20_000


def build(root: Root, base: str) -> None:
    """`root`: what is bound, linked and covered, as `backends` plans it; `base`: where the writable part is."""
    # Otherwise the mounts that follow would reach the host's own tree.
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", _SCAFFOLD, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755")
    os.makedirs(f"{_SCAFFOLD}/host")
    pivot_root(_SCAFFOLD, f"{_SCAFFOLD}/host")
    os.chdir("/")
    os.umask(0o022)
    for target, link in root["links"]:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(link, target)
    for source, target in root["binds"]:
        _bind("/host" + source, target)
    for device in root["devices"]:
        _bind("/host" + device, device, writable_device=True)
    _mount_proc(root["covered"])
    os.makedirs(base)
    options = f"size={root['disk_bytes']},nr_inodes={_INODES},mode=755"
    mount("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, options)
    for source, target in root["mounts"]:
        _bind("/host" + source, target)
    for target in root["hidden"]:
        mount("tmpfs", target, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=555")
    unmount("/host")
    os.rmdir("/host")
    # Not recursive: the writable part lies below.
    restrict("/", ATTR_RDONLY, recursive=False)


def _bind(source: str, target: str, writable_device: bool = False) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    mount(source, target, flags=MS_BIND | MS_REC)
    if not writable_device:
        restrict(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)


def _mount_proc(covered: tuple[str, ...]) -> None:
    os.makedirs("/proc", exist_ok=True)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path in covered:
        if os.path.exists(path):
            mount(path, path, flags=MS_BIND | MS_REC)
            restrict(path, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
