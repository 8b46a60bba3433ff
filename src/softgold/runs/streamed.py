"""A fit of votes on disk as a run directory: tables of items and votes in Parquet, written part by part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from softgold.output import PathLike, atomic_directory, table_text, write_json, write_table
from softgold.runs.files import file_digest, pack_ids, write_arrays
from softgold.runs.fits import ANNOTATORS, POSTERIOR, SOFT_LABELS, SOFT_LABELS_PARQUET, VOTES
from softgold.runs.records import RECORD, VoteRecord, make_record

if TYPE_CHECKING:  # a run is read without what fits it
    from softgold.scale.fitting import StreamedFit
    from softgold.scale.store import VoteStore
    from softgold.tables.parts import PartVotes, StorePart
    from softgold.tables.soft_labels import SoftLabels


def save_streamed(
    fit: StreamedFit, path: PathLike, *, csv: bool = False, source: str | None = None, force: bool = False
) -> None:
    """Write a run directory, atomically, holding one part of the items in memory at a time.

    Args:
        fit: What `fit_store` returned.
        path: Directory to write.
        csv: Write soft_labels.csv beside soft_labels.parquet.
        source: Where the votes came from, for the record.
        force: Replace an existing run.
    """
    store, posterior = fit.store, fit.posterior
    arrays = {name: array for name, array in posterior.to_arrays().items() if not name.startswith("item_")}
    arrays["annotator_ids_utf8"], arrays["annotator_ids_ends"] = pack_ids(posterior.annotator_ids)
    names = [SOFT_LABELS_PARQUET, *([SOFT_LABELS] if csv else []), ANNOTATORS, VOTES, POSTERIOR]
    with atomic_directory(path, force=force, marker=RECORD) as folder:
        _write_items(fit, folder, csv=csv)
        write_table(posterior.annotators(), folder / ANNOTATORS)
        write_arrays(folder / POSTERIOR, arrays)
        files = {name: file_digest(folder / name) for name in names}
        votes = _vote_record(store, source)
        write_json(make_record(fit.model, fit.settings, fit.diagnostics, votes, None, files), folder / RECORD)


def _vote_record(store: VoteStore, source: str | None) -> VoteRecord:
    return VoteRecord(
        source,
        store.digest(),
        store.n_items,
        store.n_annotators,
        store.n_votes,
        store.n_abstentions,
        store.abstained_items,
        store.abstained_annotators,
        store.notes,
    )


def _write_items(fit: StreamedFit, folder: Path, *, csv: bool) -> None:
    """Write soft labels and votes, part by part."""
    with ExitStack() as stack:
        labels = stack.enter_context(_table(folder / SOFT_LABELS_PARQUET))
        votes = stack.enter_context(_table(folder / VOTES))
        text = stack.enter_context((folder / SOFT_LABELS).open("wb")) if csv else None
        for part, cast, soft in fit.soft_labels():
            frame = _frame(soft, fit.store)
            labels(pa.Table.from_pandas(frame, preserve_index=False))
            votes(_vote_rows(fit.store, part, cast))
            if text is not None:
                text.write(table_text(frame, header=part.number == 0).encode())


def _frame(soft: SoftLabels, store: VoteStore) -> Any:
    """Return a part of the table; counts that may be fractions in another part are fractions in all."""
    frame = soft.to_frame()
    return frame.astype({"n_positive": np.float64 if store.weighted else np.int64})


def _vote_rows(store: VoteStore, part: StorePart, cast: PartVotes) -> pa.Table:
    items = pa.DictionaryArray.from_arrays(pa.array(cast.items.astype(np.int32)), _typed(store.texts(part), store, 0))
    people = _typed(store.annotator_texts, store, 1)
    columns = {
        "item": items,
        "annotator": pa.DictionaryArray.from_arrays(pa.array(cast.annotators), people),
        "vote": pa.array(cast.votes),
    }
    return pa.table(columns if cast.weights is None else columns | {"weight": pa.array(cast.weights)})


def _typed(texts: pa.Array, store: VoteStore, side: int) -> pa.Array:
    """Return ids in the type in which they came."""
    kind = store.kinds[side]
    return texts if kind is None else texts.cast(pa.type_for_alias(kind))


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """Give a function that appends rows to a Parquet file."""
    with path.open("wb") as file:  # Arrow takes no path that is not UTF-8
        writers: list[Any] = []

        def append(table: pa.Table) -> None:
            plain = pa.schema([pa.field(entry.name, _plain(entry.type)) for entry in table.schema])
            if not writers:
                writers.append(arrow_parquet.ParquetWriter(file, plain))
            writers[0].write_table(table.cast(plain).replace_schema_metadata(None))

        try:
            yield append
        finally:
            for writer in writers:
                writer.close()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
