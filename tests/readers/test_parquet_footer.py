"""The footer of Parquet files, against what Arrow says of good ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest

from softgold.readers.parquet_footer import column_chunks

TABLE = pa.table(
    {
        "item": [f"item {number % 97}" for number in range(1000)],
        "annotator": pa.array([number % 7 for number in range(1000)], pa.int32()),
        "vote": [None if number % 5 == 0 else number % 2 == 0 for number in range(1000)],
        "scores": [[0.5 * number, 1.0] for number in range(1000)],
        "place": [{"x": number, "label": {"name": "n"}} for number in range(1000)],
        "digest": pa.array([bytes(16)] * 1000, pa.binary(16)),
    }
)
NUMBERS = {
    "PLAIN": 0,
    "PLAIN_DICTIONARY": 2,
    "RLE": 3,
    "BIT_PACKED": 4,
    "DELTA_BINARY_PACKED": 5,
    "DELTA_LENGTH_BYTE_ARRAY": 6,
    "DELTA_BYTE_ARRAY": 7,
    "RLE_DICTIONARY": 8,
    "BYTE_STREAM_SPLIT": 9,
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 60},
        {"compression": "zstd", "data_page_version": "2.0", "version": "1.0"},
        {"use_dictionary": False, "column_encoding": {"item": "DELTA_BYTE_ARRAY", "annotator": "DELTA_BINARY_PACKED"}},
        {"write_page_index": True, "store_schema": False, "write_page_checksum": True},
        {"sorting_columns": [arrow_parquet.SortingColumn(0)], "write_statistics": ["item"]},
    ],
    ids=str,
)
def test_the_chunks_are_those_that_arrow_sees(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "table.parquet"
    arrow_parquet.write_table(TABLE, path, **options)
    metadata, expected = arrow_parquet.read_metadata(path), []
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            seen = metadata.row_group(group).column(place)
            encodings = {NUMBERS[name] for name in seen.encodings}
            expected.append((place, seen.path_in_schema, encodings, seen.num_values, seen.total_uncompressed_size))
    for origin in (path, pa.py_buffer(path.read_bytes())):
        found = [(one.place, one.path, one.encodings, one.n_values, one.n_bytes) for one in column_chunks(origin)]
        assert found == expected


@pytest.mark.parametrize(
    "footer", [b"", b"\x19", b"\x49\x1c\x00", b"\x49\x1c\x19\x1c\x00", b"\x1c" * 5000, b"\x4d\x00"]
)
def test_what_is_no_footer_is_damaged(footer: bytes) -> None:
    file = pa.py_buffer(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pa.ArrowInvalid, match="its footer is damaged"):
        list(column_chunks(file))
