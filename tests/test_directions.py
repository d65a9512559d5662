from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerothresh.sampling.directions import FAMILIES, STREAMING, DenseBlock, StreamedBlock, draw


def rows(family, q, d, s2=None, *, round=0, tag=0, key=11):
    block = draw(family, q, d, s2 or d, key=key, round=round, tag=tag)
    out = np.empty((q, d))
    block.displace(np.zeros(d), 1.0, out)
    return out, block


families = pytest.mark.parametrize("family", FAMILIES)
unit_families = pytest.mark.parametrize("family", [family for family in FAMILIES if family != "gaussian"])
shapes = st.tuples(st.integers(1, 30), st.integers(1, 12)).flatmap(
    lambda qd: st.tuples(st.just(qd[0]), st.just(qd[1]), st.integers(1, qd[1]))
)


@unit_families
@given(shapes, st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_directions_are_unit_vectors_with_supports_of_at_most_s2(family, shape, round_):
    q, d, s2 = shape
    u, _ = rows(family, q, d, s2, round=round_)
    assert np.linalg.norm(u, axis=1) == pytest.approx(1)
    assert (np.count_nonzero(u, axis=1) <= (1 if family == "coordinate" else s2)).all()


@pytest.mark.parametrize("family", ["orthogonal", "coordinate"])
@given(shapes, st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_each_d_directions_in_a_row_are_orthonormal(family, shape, round_):
    q, d, s2 = shape
    u, _ = rows(family, q, d, s2, round=round_)
    for start in range(0, q, d):
        part = u[start : start + d]
        assert part @ part.T == pytest.approx(np.eye(len(part)), abs=1e-12)


@families
@pytest.mark.parametrize("s2", [1, 2, 5, 7])
def test_second_moments_are_the_identity_over_d(family, s2):
    """E[u u'] = I/d, which makes eq. (3) unbiased on linear functions; 6 sigma over 4000 blocks."""
    d, q, blocks = 7, 3, 4000
    if family == "coordinate" and s2 > 1:
        return
    total = np.zeros((d, d))
    mean = np.zeros(d)
    for r in range(blocks):
        u, _ = rows(family, q, d, s2, round=r)
        total += u.T @ u
        mean += u.sum(axis=0)
    count = blocks * q
    sigma = 1 / np.sqrt(count)
    assert np.abs(total / count - np.eye(d) / d).max() < 6 * sigma
    assert np.abs(mean / count).max() < 6 * sigma


@families
def test_combine_is_the_sum_of_the_rows(family):
    for q, d, s2 in [(5, 5, 5), (9, 6, 2), (3, 200, 200), (4, 50_000, 50_000), (40, 30_001, 30_001)]:
        u, block = rows(family, q, d, s2)
        c = np.random.default_rng(0).standard_normal(q)
        assert np.allclose(block.combine(c), c @ u, rtol=1e-6, atol=1e-13)
        fresh = draw(family, q, d, s2, key=11, round=0, tag=0)  # combine before displace, as a memory does
        assert np.array_equal(fresh.combine(c), block.combine(c))


@unit_families
def test_large_blocks_are_streamed_and_as_good_as_kept_ones(family):
    q, d = 12, STREAMING // 12 + 1000
    u, block = rows(family, q, d)
    if family != "coordinate":
        assert isinstance(block, StreamedBlock)
    assert np.linalg.norm(u, axis=1) == pytest.approx(1, abs=1e-12)
    gram = u @ u.T
    off = np.abs(gram - np.diag(np.diag(gram))).max()
    assert off < (1e-13 if family in ("orthogonal", "coordinate") else 6 / np.sqrt(d))
    assert np.abs(u.mean()) < 6 / d


def test_a_square_block_is_kept_because_its_gram_matrix_may_be_near_singular():
    _, block = rows("orthogonal", 1100, 1100)
    assert isinstance(block, DenseBlock)
    assert np.abs(block.directions @ block.directions.T - np.eye(1100)).max() < 1e-11


def test_gaussian_directions_are_normal_and_of_length_one_in_mean_square():
    u = np.concatenate([rows("gaussian", 50, 8, round=r)[0] for r in range(100)])
    lengths = (u**2).sum(axis=1)
    assert lengths.mean() == pytest.approx(1, abs=6 * np.sqrt(2 / 8 / len(u)))
    assert lengths.var() == pytest.approx(2 / 8, rel=0.2)  # chi-square of 8 degrees over 8: unit vectors have none
    assert np.mean(u**4) * 64 == pytest.approx(3, rel=0.1)
    sparse, _ = rows("gaussian", 50, 8, s2=3)
    assert (np.count_nonzero(sparse, axis=1) == 3).all()


def test_blocks_differ_by_round_tag_and_key():
    base, _ = rows("sphere", 3, 4)
    for other in ({"round": 1}, {"tag": 1}, {"key": 12}):
        assert not np.allclose(base, rows("sphere", 3, 4, **other)[0])


def test_displacing_keeps_theta_and_scales_by_mu():
    theta = np.array([1.0, 0.0, -2.0])
    block = draw("sphere", 4, 3, 3, key=1, round=0, tag=0)
    out = np.empty((4, 3))
    block.displace(theta, 0.25, out)
    assert np.linalg.norm(out - theta, axis=1) == pytest.approx(0.25)
