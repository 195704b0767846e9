"""What estimation sees of the data: factors or second moments of [W | y], for each joint and block of time.

``[W | y] = Q [R | z]`` keeps every sum of squares, so weighting joints, leaving blocks out, dropping columns and
testing on a block need no data again, only these small factors (the tall-skinny QR of Demmel, Grigori, Hoemmen and
Langou, "Communication-optimal parallel and sequential QR and LU factorizations", SIAM J. Sci. Comput. 34, 2012).
Memory does not grow with the log.

The second moments ``[W y]ᵀ [W y]`` serve the same purposes several times faster, with half as many digits (their
condition number is the square of that of W): they are for what is selected or compared, factors for what is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.spatial import Array

Index = NDArray[np.intp]
Label = tuple[int, int]
"""Name of a block that rows are added to several times: number of the log, number of the phase."""

FOLDS = 6
"""Contiguous parts of the training data that a cross-validation leaves out in turn."""
MAX_BLOCKS = 96
"""Beyond this number neighbouring blocks are merged: memory stays flat however long the log."""


def triangle(matrix: Array) -> Array:
    """Return the R factor of a matrix, at most square (Householder QR)."""
    if len(matrix) == 0:
        return np.zeros((0, matrix.shape[1]))
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def block_sums(y: Array, weights: Array, starts: Sequence[int] | Index = (0,)) -> Array:
    """Return Σw, Σwy and Σwy² (blocks, 3) of rows y and weights (rows,), in blocks that start at some rows."""
    parts = np.stack([weights, weights * y, weights * y**2])
    return np.asarray(np.add.reduceat(parts, starts, axis=1).T)


def sums_of_others(parts: Array) -> Array:
    """Return for each of the parts (n, ...) the sum of all others, (n, ...).

    By addition alone: a difference from the whole sum has no digits where one part holds nearly all of it.
    """
    none = np.zeros_like(parts[:1])
    before = np.cumsum(np.concatenate([none, parts[:-1]]), axis=0)
    after = np.cumsum(np.concatenate([none, parts[:0:-1]]), axis=0)[::-1]
    result: Array = before + after
    return result


@dataclass
class BlockSums:
    """Sums over the rows of each block of one joint.

    Attributes:
        sums: Σw, Σwy and Σwy² of each block, (blocks, 3).

    """

    sums: Array = field(default_factory=lambda: np.zeros((0, 3)))

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.sums)

    @property
    def weight(self) -> Array:
        """Sum of the row weights of each block, (blocks,)."""
        return self.sums[:, 0]

    @property
    def empty(self) -> bool:
        """Whether no row counts: the output of the joint was not measured."""
        return not self.weight.sum() > 0.0

    @property
    def variance(self) -> float:
        """Weighted variance of y."""
        n, total, square = self.sums.sum(axis=0)
        return float(square / n - (total / n) ** 2) if n > 0 else 0.0

    def _scaled_sums(self, gain: float) -> Array:
        """Return the sums of gain · y."""
        return np.asarray(self.sums * [1.0, gain, gain**2])

    def _grouped_sums(self, groups: Sequence[Sequence[int]]) -> Array:
        """Return the sums of groups of blocks."""
        return np.array([self.sums[list(group)].sum(axis=0) for group in groups])


@dataclass(frozen=True, eq=False)
class Blocks:
    """How rows are divided into blocks.

    Attributes:
        starts: First row of each block, (blocks,).
        labels: Label of each block, None for a block of its own.
        order: Order of the rows in which blocks are contiguous, (rows,); None if it is that of time.
    """

    starts: Index
    labels: Sequence[Label | None]
    order: Index | None = None


@dataclass
class JointFactors(BlockSums):
    """Triangular factors of one joint: ``√w [W y] = Q_b [R z]_b`` for each block b.

    Attributes:
        triangles: [R z] of each block, shape (at most columns + 1, columns + 1); the last column belongs to y.
        labels: Block of each label, while rows are added.

    """

    triangles: list[Array] = field(default_factory=list)
    labels: dict[Label, int] = field(default_factory=dict)

    def add(self, rows: Array, weights: Array, label: Label | None = None) -> None:
        """Add rows [W y] (samples, columns + 1) and their weights (samples,) to the block of a label, or as a block."""
        R, sums = triangle(rows * np.sqrt(weights)[:, None]), block_sums(rows[:, -1], weights)
        if label in self.labels:
            block = self.labels[label]
            self.triangles[block] = triangle(np.vstack([self.triangles[block], R]))
            self.sums[block] += sums[0]
            return
        if self.blocks >= MAX_BLOCKS:
            merged = self.grouped(neighbours(self.blocks))
            self.sums, self.triangles = merged.sums, merged.triangles
            self.labels = {name: block // 2 for name, block in self.labels.items()}
        if label is not None:
            self.labels[label] = self.blocks
        self.triangles.append(R)
        self.sums = np.vstack([self.sums, sums])

    def add_blocks(self, rows: Array, weights: Array, blocks: Blocks) -> None:
        """Add rows [W y] (samples, columns + 1) and their weights (samples,), divided into blocks."""
        if blocks.order is not None:
            rows, weights = rows[blocks.order], weights[blocks.order]
        ends = [*blocks.starts[1:], len(rows)]
        for first, end, label in zip(blocks.starts, ends, blocks.labels, strict=True):
            self.add(rows[first:end], weights[first:end], label)

    def merged(self, blocks: Sequence[int] | None = None) -> Array:
        """Return the factor of several blocks together (all of them by default)."""
        chosen = range(self.blocks) if blocks is None else blocks
        parts = [self.triangles[k] for k in chosen]
        return parts[0] if len(parts) == 1 else triangle(np.vstack(parts))

    def grouped(self, groups: Sequence[Sequence[int]]) -> JointFactors:
        """Return the factors with groups of blocks merged to one block each."""
        return JointFactors(self._grouped_sums(groups), [self.merged(group) for group in groups])

    def scaled(self, gain: float) -> JointFactors:
        """Return the factors with y in another unit: gain · y."""
        factor = np.ones(self.triangles[0].shape[1])
        factor[-1] = gain
        return JointFactors(self._scaled_sums(gain), [R * factor for R in self.triangles])

    def columns(self, keep: Index) -> JointFactors:
        """Return the factors of some of the columns and y (no longer triangular, as good for sums of squares)."""
        chosen = np.append(keep, -1)
        return replace(self, triangles=[R[:, chosen] for R in self.triangles])

    def with_known(self, values: Array) -> JointFactors:
        """Return the factors of ``[W_e | y - W_k x_k]`` with known parameters x_k (NaN in `values`: estimated)."""
        known = np.flatnonzero(~np.isnan(values))
        if not known.size:
            return self
        changed = [R.copy() for R in self.triangles]
        for R in changed:
            R[:, -1] -= R[:, known] @ values[known]
            R[:, known] = 0.0
        return replace(self, triangles=changed)

    def with_sum(self, columns: Index, value: float, weight: float) -> JointFactors:
        """Return the factors with one more row a block: the known sum of some unknowns, `weight` times their size."""
        row = np.zeros(self.triangles[0].shape[1])
        row[columns], row[-1] = 1.0, value
        sizes = [float(np.linalg.norm(R[:, columns])) for R in self.triangles]
        stacks = [np.vstack([R, weight * size * row]) for R, size in zip(self.triangles, sizes, strict=True)]
        return replace(self, triangles=[triangle(stack) for stack in stacks])

    def moments(self) -> JointMoments:
        """Return the second moments RᵀR of every block."""
        return JointMoments(self.sums, np.stack([R.T @ R for R in self.triangles]))


@dataclass
class JointMoments(BlockSums):
    """Second moments ``[W y]ᵀ [W y]`` of one joint block by block: `squares` (blocks, columns + 1, columns + 1)."""

    squares: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def add(self, squares: Array, sums: Array) -> None:
        """Add blocks with their moments (blocks, columns + 1, columns + 1) and `block_sums` (blocks, 3)."""
        if self.blocks:
            squares, sums = np.concatenate([self.squares, squares]), np.concatenate([self.sums, sums])
        self.squares, self.sums = squares, sums
        while self.blocks > MAX_BLOCKS:
            merged = self.grouped(neighbours(self.blocks))
            self.squares, self.sums = merged.squares, merged.sums

    def merged(self) -> Array:
        """Return the second moments of all blocks together."""
        return np.asarray(self.squares.sum(axis=0))

    def grouped(self, groups: Sequence[Sequence[int]]) -> JointMoments:
        """Return the moments with groups of neighbouring blocks merged to one block each."""
        if len(groups) == self.blocks:
            return self
        squares = np.stack([self.squares[group[0] : group[-1] + 1].sum(axis=0) for group in groups])
        return JointMoments(self._grouped_sums(groups), squares)

    def folded(self) -> JointMoments:
        """Return the moments with blocks merged to the folds of a cross-validation."""
        return self.grouped(fold_blocks(self.blocks))

    def scaled(self, gain: float) -> JointMoments:
        """Return the moments with y in another unit: gain · y."""
        squares = self.squares.copy()
        squares[:, -1] *= gain
        squares[:, :, -1] *= gain
        return JointMoments(self._scaled_sums(gain), squares)

    def columns(self, keep: Index) -> JointMoments:
        """Return the moments of some of the columns and y."""
        chosen = np.append(keep, -1)
        return replace(self, squares=self.squares[:, chosen][:, :, chosen])

    def with_known(self, values: Array) -> JointMoments:
        """Return the moments with known parameters taken out; see `JointFactors.with_known`."""
        known = np.flatnonzero(~np.isnan(values))
        if not known.size:
            return self
        turn = np.eye(len(values) + 1)
        turn[known, known] = 0.0
        turn[known, -1] = -values[known]
        return replace(self, squares=turn.T @ self.squares @ turn)

    def with_sum(self, columns: Index, value: float, weight: float) -> JointMoments:
        """Return the moments with one more row a block; see `JointFactors.with_sum`."""
        row = np.zeros(self.squares.shape[1])
        row[columns], row[-1] = 1.0, value
        sizes = self.squares[:, columns, columns].sum(axis=1)
        return replace(self, squares=self.squares + weight**2 * sizes[:, None, None] * np.outer(row, row))


def neighbours(blocks: int) -> list[list[int]]:
    """Return the blocks two by two."""
    return [list(range(k, min(k + 2, blocks))) for k in range(0, blocks, 2)]


def fold_blocks(blocks: int) -> list[list[int]]:
    """Return `FOLDS` contiguous groups of blocks, as equal as possible."""
    return [list(map(int, group)) for group in np.array_split(np.arange(blocks), min(FOLDS, blocks))]
