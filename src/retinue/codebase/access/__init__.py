"""Safe access to the files of the user's roots: policy, opening, walking, ignore files, decoding and limits.

Everything else in `codebase` reads files through this package. Knows nothing of questions, searches and
indexes.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.access.directory import (
        POSIX as POSIX,
        Directory as Directory,
        open_directory as open_directory,
        read_fully as read_fully,
    )
    from retinue.codebase.access.globs import path_filter as path_filter
    from retinue.codebase.access.ignore import IGNORE_FILES as IGNORE_FILES
    from retinue.codebase.access.limits import (
        Bounds as Bounds,
        OmissionTally as OmissionTally,
        Omitted as Omitted,
        OnRead as OnRead,
        charge_nothing as charge_nothing,
        omission_reason as omission_reason,
    )
    from retinue.codebase.access.linear_regex import (
        PatternInvalid as PatternInvalid,
        Regex as Regex,
        compile_regex as compile_regex,
    )
    from retinue.codebase.access.opener import HiddenHardLinks as HiddenHardLinks, Opener as Opener
    from retinue.codebase.access.paths import FileEntry as FileEntry, candidate_entries as candidate_entries
    from retinue.codebase.access.policy import (
        SECRET_NAMES as SECRET_NAMES,
        Policy as Policy,
        reading_policy as reading_policy,
    )
    from retinue.codebase.access.secret_files import (
        SecretFiles as SecretFiles,
        find_secret_files as find_secret_files,
    )
    from retinue.codebase.access.text import (
        Excerpt as Excerpt,
        clip_line as clip_line,
        make_excerpt as make_excerpt,
        split_lines as split_lines,
    )
    from retinue.codebase.access.walk import (
        MAX_FILES as MAX_FILES,
        FileWalker as FileWalker,
        FolderListing as FolderListing,
        FolderReader as FolderReader,
        ignore_rules_above as ignore_rules_above,
        list_folder as list_folder,
    )
    from retinue.codebase.access.writer import FileWriter as FileWriter
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "directory": "POSIX Directory open_directory read_fully",
            "globs": "path_filter",
            "ignore": "IGNORE_FILES",
            "limits": "Bounds OmissionTally Omitted OnRead charge_nothing omission_reason",
            "linear_regex": "PatternInvalid Regex compile_regex",
            "opener": "HiddenHardLinks Opener",
            "paths": "FileEntry candidate_entries",
            "policy": "SECRET_NAMES Policy reading_policy",
            "secret_files": "SecretFiles find_secret_files",
            "text": "Excerpt clip_line make_excerpt split_lines",
            "walk": "MAX_FILES FileWalker FolderListing FolderReader ignore_rules_above list_folder",
            "writer": "FileWriter",
        },
    )
