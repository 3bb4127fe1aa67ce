"""Bytes on disk.

container   arrays and JSON in one file, written whole or not at all
folder      the folder of a run: settings, manifest and files, continued after any interruption
lock        one run at a time in a folder
embedded    a saved explanation inside a report
"""

from gralis.storage.container import read_arrays, write_arrays, write_text, write_whole
from gralis.storage.embedded import archive_of, content_of
from gralis.storage.folder import RunFolder
from gralis.storage.lock import Lock

__all__ = ["Lock", "RunFolder", "archive_of", "content_of", "read_arrays", "write_arrays", "write_text", "write_whole"]
