"""Atomic writes: a target holds the old content or the new one, at every moment and whatever ends the process.

- `atomic_file`: write a temporary file beside the target, sync it, rename it.
- `atomic_directory`: the same for a folder; an existing one is exchanged with the new one in one step
  (`renameat2(RENAME_EXCHANGE)`), or through a journal where the system has no such call.
- `update_directory`: replace several files of a folder together. A run directory is rebuilt beside itself, with
  hard links to the files that stay, and exchanged; any other folder gets a journal.
- `atomic_files`: replace several files in any folders together, through a journal.
- A journal lists the renames that belong together. The process that wrote it completes it, or, if that was killed, the
  next one that writes to the folder or reads it through `reading`.
- Temporary names carry host, process id and start time, so the next writer removes those of dead processes.

Nothing that exists is replaced unless `force` is given.
"""

from softgold.output.atomic import atomic_directory, atomic_file, atomic_files, new_folder, update_directory
from softgold.output.journal import reading, settle
from softgold.output.json import json_text, to_jsonable, write_json
from softgold.output.system import RUN_MARKER
from softgold.output.tables import excel_safe, table_text, undo_excel_safe, write_rows, write_table, write_tables
from softgold.output.targets import PathLike, Stamps, check_target, stamps

__all__ = [
    "RUN_MARKER",
    "PathLike",
    "Stamps",
    "atomic_directory",
    "atomic_file",
    "atomic_files",
    "check_target",
    "excel_safe",
    "json_text",
    "new_folder",
    "reading",
    "settle",
    "stamps",
    "table_text",
    "to_jsonable",
    "undo_excel_safe",
    "update_directory",
    "write_json",
    "write_rows",
    "write_table",
    "write_tables",
]
