"""The sandbox of the process that reads documents, so that an exploited parser reaches nothing else.

    everywhere  Python's audit hook: no socket, program or process (machine code can bypass it)
                resource limits: no written file; without seccomp, no process (does not bind root)
    Linux       seccomp, where libseccomp.so.2 is installed: no socket, program, process, or signal to another process
                Landlock, since 5.13: reads only Python and its packages, no other file, no environment or memory of
                another process; writes nothing

`python -m adapters.extraction.fence` prints what the kernel of this machine enforces.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

SIZE = struct.Struct(">Q")
PACKAGE_ROOT = Path(__file__).parents[2]
# Variables that a child inherits: paths, no secrets.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a child process: the inherited ones and `more`."""
    path = os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH"))))
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {"PYTHONPATH": path} | dict(more)


def exit_reason(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def read_block(source: BinaryIO) -> bytes | None:
    """The next block from the parent; None at the end."""
    head = source.read(SIZE.size)
    return source.read(SIZE.unpack(head)[0]) if len(head) == SIZE.size else None


def take_stdout() -> BinaryIO:
    """The stream for the child's blocks. From now on, prints of libraries go to standard error instead."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def write_block(out: BinaryIO, data: bytes) -> None:
    out.write(SIZE.pack(len(data)) + data)
    out.flush()


PYTHON = frozenset(
    """socket.__new__ socket.bind socket.connect socket.getaddrinfo socket.sendto subprocess.Popen os.system os.exec
    os.posix_spawn os.spawn os.fork os.forkpty pty.spawn os.kill os.killpg""".split()  # noqa: SIM905
)
# seccomp(2), by the names of libseccomp; calls that an architecture or version lacks are ignored.
SYSCALLS = """socket socketpair connect bind listen accept accept4 fork vfork execve execveat kill tkill tgkill
    rt_sigqueueinfo rt_tgsigqueueinfo ptrace process_vm_readv process_vm_writev pidfd_open pidfd_getfd pidfd_send_signal
    io_uring_setup bpf perf_event_open userfaultfd keyctl add_key request_key unshare setns mount chroot shmget
    mq_open open_by_handle_at chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat setxattr lsetxattr
    fsetxattr""".split()  # noqa: SIM905
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
MASKED_EQ = 7
CLONE_THREAD = 0x00010000
# landlock(7): the numbers of its calls are the same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READ_FILE, READ_DIR = 1 << 2, 1 << 3
RIGHTS = ((1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))  # of files: first version, rights
NETWORK, SCOPES = 0b11, 0b11  # TCP; abstract sockets, signals
NO_NEW_PRIVS = 38
# Our own packages that read documents. The folder may also contain settings and keys.
PACKAGES = ("adapters", "pipelines", "prompts", "schemas", "text")
SYSTEM = """/lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /usr/share /nix/store /etc/ld.so.cache /etc/localtime
    /etc/mime.types /etc/ssl/openssl.cnf /etc/pki/tls/openssl.cnf /etc/crypto-policies /dev/null
    /dev/urandom""".split()  # noqa: SIM905


def restrict_process() -> list[str]:
    """Restrict this process for ever. Call it before reading a document and before starting threads.

    Returns:
        The active mechanisms of the kernel: some of `seccomp`, `landlock`.
    """
    fences = (("landlock", _landlock), ("seccomp", _seccomp)) if sys.platform == "linux" else ()
    held = [name for name, fence in fences if fence()]
    if "seccomp" not in held:  # on Linux, this limit would forbid threads as well
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    sys.addaudithook(_audit_hook)
    tempfile.tempdir = "/"  # unstructured reads its name; no file is written there
    return held


def _audit_hook(event: str, _: object) -> None:
    if event in PYTHON:
        raise PermissionError(f"{event}: not while reading a document")


class _Comparison(ctypes.Structure):
    """scmp_arg_cmp"""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def _seccomp() -> bool:
    """Whether the filter is active."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))

    def deny(name: str, code: int, *when: _Comparison) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        conditions = (_Comparison * len(when))(*when)
        library.seccomp_rule_add_array(context, ctypes.c_uint32(ERRNO | code), number, len(when), conditions)

    for name in SYSCALLS:
        deny(name, errno.EPERM)
    deny("clone", errno.EPERM, _Comparison(0, MASKED_EQ, CLONE_THREAD, 0))
    deny("clone3", errno.ENOSYS)  # a filter cannot read its flags; the C library falls back to `clone`
    return bool(library.seccomp_load(context) == 0)


def _landlock() -> bool:
    """Whether its rules are active."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    version = call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return False
    files = sum(rights for since, rights in RIGHTS if version >= since)
    handled = [files] + [NETWORK] * (version >= 4) + [SCOPES] * (version >= 6)
    attributes = (ctypes.c_uint64 * len(handled))(*handled)
    ruleset = call(CREATE_RULESET, attributes, ctypes.c_size_t(ctypes.sizeof(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    for path, rights in _readable():
        with suppress(OSError):
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            below = rights if os.path.isdir(path) else rights & READ_FILE
            rule = below.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
            call(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
            os.close(handle)
    libc = ctypes.CDLL(None)
    libc.prctl(NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    restricted = call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    os.close(ruleset)
    return bool(restricted)


def _readable() -> Iterator[tuple[str | Path, int]]:
    both = READ_FILE | READ_DIR
    yield PACKAGE_ROOT, READ_DIR  # names only, for Python's imports
    for package in PACKAGES:
        yield PACKAGE_ROOT / package, both
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    prefixes = (f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix))
    for place in (*SYSTEM, *libraries, *prefixes, *sys.path):
        if place and Path(place).resolve() not in (PACKAGE_ROOT, Path.cwd()):
            yield place, both


if __name__ == "__main__":
    sys.stdout.write((", ".join(restrict_process()) or "Python and limits alone") + "\n")
