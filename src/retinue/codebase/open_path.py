"""Where an open file lies, asked of the system and not of any name, which may have been swapped since."""

from __future__ import annotations

import errno
import os
import sys

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    _final_path = ctypes.WinDLL("kernel32", use_last_error=True).GetFinalPathNameByHandleW
    _final_path.argtypes = (wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD)
    _final_path.restype = wintypes.DWORD
    _LONGEST = 32_768
    _SHARE, _DEVICE = "\\\\?\\UNC\\", "\\\\?\\"

    def path_of_open_file(fd: int) -> str:
        buffer = ctypes.create_unicode_buffer(_LONGEST)
        length = _final_path(msvcrt.get_osfhandle(fd), buffer, _LONGEST, 0)
        if not 0 < length < _LONGEST:
            raise OSError(errno.ENOENT, "it cannot be told where the file lies")
        path = buffer.value
        if path.startswith(_SHARE):
            return "\\\\" + path.removeprefix(_SHARE)
        return path.removeprefix(_DEVICE)

elif sys.platform == "darwin":
    import fcntl

    def path_of_open_file(fd: int) -> str:
        return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))

else:

    def path_of_open_file(fd: int) -> str:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - a Path cannot show a deleted file's mark
