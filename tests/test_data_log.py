"""The log itself: immutable, sliced, chunked, split."""

from __future__ import annotations

import numpy as np
import pytest

from data_files import moving_log, rows_text, write
from jointwise.data import Log, holdout, read_log
from jointwise.errors import DataError, ShapeError


def test_immutable_and_copied():
    q = np.zeros((3, 2))
    log = Log(t=np.arange(3.0), q=q)
    q[0, 0] = 5.0
    assert log.q[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        log.q[0, 0] = 1.0
    with pytest.raises(AttributeError):
        log.q = q


def test_shapes_are_checked():
    with pytest.raises(ShapeError, match="a log needs"):
        Log(t=np.arange(3.0), q=np.zeros((4, 2)))
    with pytest.raises(ShapeError, match="'current' must have shape"):
        Log(t=np.arange(3.0), q=np.zeros((3, 2)), current=np.zeros((3, 1)))


def test_slice_keeps_rows(tmp_path):
    log = read_log(write(tmp_path, "t,q1\n" + rows_text(10, 2))).slice(4, 8).slice(1, 3)
    assert log.t.tolist() == [0.05, 0.06]
    assert log.origin.where(0) == "row 7"


def test_select():
    log = moving_log()
    assert log.select(current=False).available == ("t", "q", "qd")
    with pytest.raises(DataError, match="can be left out"):
        log.select(q=False)
    with pytest.raises(DataError, match="no channel 'torque'"):
        log.channel("tau")


@pytest.mark.parametrize("size", [7, 100, 1])
def test_chunks_cover_the_log(size):
    log = moving_log(50)
    chunks = list(log.chunks(size))
    assert np.array_equal(np.concatenate([chunk.q for chunk in chunks]), log.q)
    assert all(chunk.samples <= size for chunk in chunks)
    assert [chunk.t[0] for chunk in chunks] == log.t[::size].tolist()


def test_release_keeps_the_values(tmp_path):
    log = read_log(write(tmp_path, "t,q1\n" + rows_text(3000, 2)), spool_bytes=0)
    before = log.q.sum()
    log.release()
    assert log.q.sum() == before


def test_take_spools_like_its_log(tmp_path):
    path = write(tmp_path, "t,q1,i1\n" + rows_text(3000, 3))
    index = np.arange(0, 3000, 2)
    for limit in (None, 0):
        log = read_log(path, spool_bytes=limit)
        taken = log.take(index, "every second sample")
        assert (taken.pages is None) == (log.pages is None)
        assert np.array_equal(taken.q, log.q[index])
        assert taken.origin.notes == ("every second sample",)


def test_holdout():
    train, test = holdout(moving_log(100), 0.3)
    assert (train.samples, test.samples) == (70, 30)
    assert train.t[-1] < test.t[0]
    for fraction in (0.0, 1.0, -1.0):
        with pytest.raises(DataError, match="between 0 and 1"):
            holdout(moving_log(100), fraction)
    with pytest.raises(DataError, match="too few"):
        holdout(moving_log(3), 0.1)
