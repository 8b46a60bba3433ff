"""NumPy files: damaged, hostile and foreign ones get a sentence."""

from __future__ import annotations

import io
import random
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from softgold.errors import InputError
from softgold.readers.arrays import read_array, read_arrays


def npy(array: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def with_shape(shape: str) -> bytes:
    """Return an array file of three numbers whose header says another shape."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape},), }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)


@pytest.mark.parametrize("shape", ["1000000000000", "9223372036854775807", "10, 100000000000"])
def test_a_header_that_promises_more_than_there_is(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(with_shape(shape))
    with pytest.raises(InputError, match="its header promises"):
        read_array(path)


def test_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros(1_000_000))
    with pytest.raises(InputError, match=r"unpacks to more than 100,000 bytes; .*--max-bytes"):
        read_arrays(path, max_bytes=100_000)
    assert read_array(path).shape == (1_000_000,)


def test_an_encrypted_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.zeros(3))
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="encrypted"):
        read_arrays(path)


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"text", npy(np.array([{}], dtype=object))]
)
def test_foreign_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"cannot read .* as a NumPy file"):
        read_arrays(path)


def test_an_archive_of_other_things(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert [array.dtype.kind for array in read_arrays(path).values()] in ([], ["S"])


@pytest.mark.parametrize("seed", range(5))
def test_any_damage(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(5), b=np.eye(2))
    for good, name in ((npy(np.arange(6.0)), "x.npy"), (buffer.getvalue(), "x.npz")):
        for _ in range(60):
            data = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path = tmp_path / name
            path.write_bytes(bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data))
            with suppress(InputError):  # anything else fails the test
                read_arrays(path)
