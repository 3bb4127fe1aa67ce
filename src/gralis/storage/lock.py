"""One run at a time in a folder: a lock that the operating system releases when the process ends for any reason."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from gralis.errors import GralisError

__all__ = ["Lock"]

_held: dict[Path, int] = {}  # the open files by path: a second run within this process is noticed here
_guard = threading.Lock()
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_LONGEST = 32  # bytes of a lock file; a longer file is something else


class Lock:
    """A context manager that holds the lock of a folder.

    The file `lock` stays in the folder, but only a lock on it counts, so a run that died does not block the next one.
    A link in its place is not followed, and a file that does not look like a lock is not touched. A forked child does
    not hold the lock of its parent.

    Parameters
    ----------
    folder : Path
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder.resolve() / "lock"
        self._file, self._owner = -1, -1

    def __enter__(self) -> Lock:
        with _guard:
            if self._path in _held:
                raise self._taken(str(os.getpid()))
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
            except OSError as error:
                raise self._refused(error) from error
            try:
                _require_lock(file)
                _take(file)
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())  # only to help a person who looks
            except OSError as error:
                holder, is_held = _read(file), isinstance(error, BlockingIOError | PermissionError)
                os.close(file)
                raise self._taken(holder) if is_held else self._refused(error) from error
            self._file, self._owner = file, os.getpid()
            _held[self._path] = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _guard:
            if self._owner == os.getpid():  # a forked child has nothing to release
                del _held[self._path]
                os.close(self._file)

    def _taken(self, holder: str) -> GralisError:
        return GralisError(
            f"Another run (process {holder or 'unknown'}) is writing to {self._path.parent}; wait for it, or choose "
            f"another folder with out=."
        )

    def _refused(self, error: OSError) -> GralisError:
        return GralisError(f"{self._path} cannot be locked ({_reason(error)}); make room, or use another folder.")


def _reason(error: OSError) -> str:
    return "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)


def _require_lock(file: int) -> None:
    """Raise an OSError unless the open file is one that only a lock can be: regular, short, with a single name."""
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_size > _LONGEST:
        raise OSError(errno.EINVAL, "it is another file, which is left as it is")


def _forget() -> None:
    """In a forked child: close the parent's locks, which the parent goes on holding."""
    global _guard
    _guard = threading.Lock()
    for file in _held.values():
        with suppress(OSError):
            os.close(file)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _read(file: int) -> str:
    try:
        return os.read(file, _LONGEST).decode(errors="replace").strip()
    except OSError:  # Windows locks the bytes themselves
        return ""


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: int) -> None:
        # flock, not lockf: that one is lost as soon as this process opens and closes the file once more.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
