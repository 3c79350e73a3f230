"""Sets of places as integers whose bit j says that j is in the set, and many of them as a matrix of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.uint8]
"""One row of 0 and 1 for each set."""

_CHUNK = 255  # so many ones still fit into a byte


def members(bits: int) -> Iterator[int]:
    """Yield the places of the bits that are set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def member(bits: int, number: int) -> int:
    """Return what `members` yields after `number` others, without going through them. Raises IndexError."""
    if not 0 <= number < bits.bit_count():
        raise IndexError(f"there is no member {number} among {bits.bit_count()}")
    place, width = 0, bits.bit_length()
    while width > 1:
        half = width // 2
        low = bits & ((1 << half) - 1)
        before = low.bit_count()
        if number < before:
            bits, width = low, half
        else:
            number -= before
            place += half
            bits >>= half
            width -= half
    return place


def as_matrix(rows: Sequence[int]) -> Matrix:
    """Return n rows of n bits each as an n × n matrix. A bit from n on is an OverflowError or left out."""
    count = len(rows)
    if not count:
        return np.zeros((0, 0), np.uint8)
    width = -(-count // 8)
    packed = np.frombuffer(b"".join(row.to_bytes(width, "little") for row in rows), np.uint8)
    return np.unpackbits(packed.reshape(count, width), axis=1, count=count, bitorder="little")


def first_one_sided(matrix: Matrix) -> tuple[int, int] | None:
    """Return the first place (row, column) that is set while (column, row) is not; None when there is none."""
    for first in range(0, len(matrix), _CHUNK):
        rows = matrix[first : first + _CHUNK]
        alone = rows > matrix[:, first : first + _CHUNK].T
        if alone.any():
            row, column = np.unravel_index(alone.argmax(), alone.shape)
            return first + int(row), int(column)
    return None


def grown_group(matrix: Matrix, first: int) -> list[int]:
    """Take a place, then always the one whose row has most in common with what is left, the first of equals.

    What is left is what the rows of all taken have in common. `matrix` is symmetric with an empty diagonal.
    """
    group = [first]
    left = matrix[first].astype(bool)
    degrees = np.zeros(len(matrix), np.int64)
    _add_rows(matrix, np.flatnonzero(left), degrees, 1)
    while left.any():
        place = int(np.where(left, degrees, -1).argmax())
        group.append(place)
        gone = left & (matrix[place] == 0)
        _add_rows(matrix, np.flatnonzero(gone), degrees, -1)
        left &= ~gone
    return group


def _add_rows(matrix: Matrix, rows: npt.NDArray[np.intp], totals: npt.NDArray[np.int64], sign: int) -> None:
    """Add the sum of some rows to totals, or take it away; in bytes as far as they hold it, which is far faster."""
    for first in range(0, len(rows), _CHUNK):
        totals += sign * matrix[rows[first : first + _CHUNK]].sum(axis=0, dtype=np.uint8).astype(np.int64)


__all__ = ["Matrix", "as_matrix", "first_one_sided", "grown_group", "member", "members"]
