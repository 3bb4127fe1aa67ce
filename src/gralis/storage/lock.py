"""One run at a time in a folder: a lock that the operating system releases when the process ends for any reason."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import TracebackType

from gralis.errors import GralisError

__all__ = ["Lock"]

_held: set[Path] = set()  # a lock belongs to the whole process, so a second run within it is noticed here
_guard = threading.Lock()


class Lock:
    """A context manager that holds the lock of a folder.

    The file `lock` stays in the folder, but only a lock on it counts, so a run that died does not block the next one.

    Parameters
    ----------
    folder : Path
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder.resolve() / "lock"
        self._file = -1

    def __enter__(self) -> Lock:
        with _guard:
            if self._path in _held:
                raise self._taken(str(os.getpid()))
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
            except OSError as error:
                raise self._refused(error) from error
            try:
                _take(file)
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())  # only to help a person who looks
            except OSError as error:
                holder, is_held = _read(file), isinstance(error, BlockingIOError | PermissionError)
                os.close(file)
                raise self._taken(holder) if is_held else self._refused(error) from error
            self._file = file
            _held.add(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _guard:
            _held.discard(self._path)
            os.close(self._file)

    def _taken(self, holder: str) -> GralisError:
        return GralisError(
            f"Another run (process {holder or 'unknown'}) is writing to {self._path.parent}; wait for it, or choose "
            f"another folder with out=."
        )

    def _refused(self, error: OSError) -> GralisError:
        return GralisError(
            f"{self._path} cannot be locked ({error.strerror or error}); make room, or use another folder."
        )


def _read(file: int) -> str:
    try:
        return os.read(file, 32).decode(errors="replace").strip()
    except OSError:  # Windows locks the bytes themselves
        return ""


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
