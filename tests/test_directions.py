from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerothresh.sampling.directions import FAMILIES, STREAMING, DenseBlock, HartleyBlock, StreamedBlock, draw
from zerothresh.sampling.hartley import SHORT, waves


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
@pytest.mark.parametrize("q", [10, 12])
def test_large_blocks_are_streamed_and_as_good_as_kept_ones(family, q):
    d = STREAMING // q + 1000
    u, block = rows(family, q, d)
    if family != "coordinate":
        assert isinstance(block, HartleyBlock if family == "orthogonal" and q > 10 else StreamedBlock)
        assert block.nbytes < 8 * (d + q * (q + 2))
    assert np.linalg.norm(u, axis=1) == pytest.approx(1, abs=1e-12)
    gram = u @ u.T
    off = np.abs(gram - np.diag(np.diag(gram))).max()
    assert off < (1e-13 if family in ("orthogonal", "coordinate") else 6 / np.sqrt(d))
    assert np.abs(u.mean()) < 6 / d


# Orthonormal blocks that Gram-Schmidt would be too slow for: rows of the Hartley transform.


def waves_of(q, d, round_=0):
    """The block as draw would make it if it were large."""
    return HartleyBlock.drawn(q, d, (round_, 0, 5)).directions()


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 30, SHORT, SHORT + 1, 243, 256, 257, 300, 1000, 1024])
def test_hartley_rows_are_orthonormal_in_every_dimension(d):
    for q in {1, max(d // 3, 1), d, d + 1, 2 * d + 1}:
        u = waves_of(q, d)
        for start in range(0, q, d):
            part = u[start : start + d]
            assert np.abs(part @ part.T - np.eye(len(part))).max() < 1e-13
        assert np.abs(u).max() <= np.sqrt(2 / d) * (1 + 1e-14)


@pytest.mark.parametrize(
    ("q", "d", "s2"),
    [
        *[
            (17, 40, 40),
            (18, 40, 40),
            (64, 5, 5),
            (900, 5, 5),
            (100, 11, 11),
            (30, 97, 97),
            (500, 200, 200),
            (40, 3001, 3001),
        ],
        *[(100, 11, 3), (100, 12, 11), (40, 50, 25), (120, 50, 49), (90, 301, 150), (200, 300, 290)],
    ],
)
def test_blocks_of_all_sizes_are_orthonormal_and_repeat(q, d, s2):
    u, block = rows("orthogonal", q, d, s2)
    for start in range(0, q, d):
        part = u[start : start + d]
        assert np.abs(part @ part.T - np.eye(len(part))).max() < 1e-12
    assert (np.count_nonzero(u, axis=1) <= s2).all()
    again, _ = rows("orthogonal", q, d, s2)
    assert np.array_equal(u, again)
    c = np.random.default_rng(0).standard_normal(q)
    assert np.allclose(block.combine(c), c @ u, rtol=1e-6, atol=1e-13)
    assert not np.array_equal(u, rows("orthogonal", q, d, s2, round=1)[0])
    if q >= 2 * d:  # each cycle is a basis of its own
        assert not np.allclose(np.abs(u[:d] @ u[d : 2 * d].T).max(axis=1), 1)


def test_gram_schmidt_is_kept_for_small_blocks():
    for q, d in [(10, 5000), (15, 15), (17, 40), (200, 5), (9000, 4)]:
        u, _ = rows("orthogonal", q, d)
        assert np.abs(u).max() > 1.01 * np.sqrt(2 / d)  # a Hartley row has no such entry
    for q, d in [(11, 5000), (18, 40), (481, 5), (64, 64)]:
        u, block = rows("orthogonal", q, d)
        assert isinstance(block, DenseBlock)
        assert np.abs(u).max() <= np.sqrt(2 / d) * (1 + 1e-14)


def test_kept_and_streamed_hartley_blocks_give_the_same_points():
    theta = np.random.default_rng(1).standard_normal(300)
    streamed = HartleyBlock.drawn(20, 300, (0, 0, 5))
    points, kept = np.empty((20, 300)), np.empty((20, 300))
    streamed.displace(theta, 0.3, points)
    DenseBlock(streamed.directions()).displace(theta, 0.3, kept)
    assert np.array_equal(points, kept)


@pytest.mark.parametrize(("q", "d"), [(20, 300), (50, 20)])
def test_the_directions_of_a_part_are_those_of_the_block(q, d):
    block = HartleyBlock.drawn(q, d, (0, 0, 5))
    u, c = block.directions(), np.arange(1.0, q + 1)
    for start, stop in [(0, 1), (3, q - 2), (q - 1, q)]:
        part = block.part(start, stop)
        assert np.array_equal(part.directions(), u[start:stop])
        assert np.array_equal(part.part(0, 1).directions(), u[start : start + 1])
        assert np.array_equal(DenseBlock(u).part(start, stop).directions, u[start:stop])
        assert part.combine(c[start:stop]) == pytest.approx(c[start:stop] @ u[start:stop], abs=1e-12)


def test_sparse_hartley_directions_have_the_second_moments_of_uniform_ones():
    """E[u u'] = I/d and E[u] = 0 with supports of 12 of 13 coordinates; 6 sigma over 3000 blocks."""
    d, q, blocks = 13, 12, 3000
    u = np.concatenate([rows("orthogonal", q, d, 12, round=r)[0] for r in range(blocks)])
    assert np.abs(u.T @ u / len(u) - np.eye(d) / d).max() < 6 * 2 / d / np.sqrt(len(u))
    assert np.abs(u.mean(axis=0)).max() < 6 * np.sqrt(2 / d / len(u))


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_hartley_directions_have_the_second_moments_of_uniform_ones(d):
    """E[u u'] = I/d and E[u] = 0 for the first and for the last direction of a cycle; 6 sigma over 4000 blocks."""
    blocks = 4000
    all_rows = np.array([waves_of(d, d, r) for r in range(blocks)])
    for l in (0, d - 1):
        u = all_rows[:, l]
        assert np.abs(u.T @ u / blocks - np.eye(d) / d).max() < 6 * 2 / d / np.sqrt(blocks) * (d > 1) + 1e-12
        assert np.abs(u.mean(axis=0)).max() < 6 * np.sqrt(2 / d / blocks)


def gradients(d):
    """Gradients of unit length, from one coordinate to all of them."""
    one, j = np.eye(1, d)[0], np.arange(d)
    some = {
        "first coordinate": one,
        "a coordinate": np.roll(one, d // 3),
        "two coordinates": np.roll(one, 1) + np.roll(one, 1 + d // 2),
        "opposite coordinates": np.roll(one, 3) - np.roll(one, d - 3),
        "ones": np.ones(d),
        "a cosine": np.cos(2 * np.pi * 5 * j / d),
        "normal": np.random.default_rng(d).standard_normal(d),
        "geometric": 0.5**j,
    }
    return {name: g / np.linalg.norm(g) for name, g in some.items()}


@pytest.mark.parametrize(("q", "d"), [(12, 64), (12, 97), (20, 256), (75, 300)])
def test_the_error_of_a_gradient_from_a_hartley_block_is_that_from_a_uniform_block(q, d):
    """The mean of the error is (d - q)/q ||g||^2 (5 sigma over 600 blocks), and its spread is at most the uniform one.

    For a uniform block, the share b of g in the span of the directions is Beta(q/2, (d - q)/2) and the error is
    1 + ((d/q)^2 - 2d/q) b. The spread of 600 blocks is known to 1/sqrt(1200), 3 per cent: 15 per cent are 5 sigma.
    """
    blocks = 600
    uniform = ((d / q) ** 2 - 2 * d / q) * np.sqrt(2 * q * (d - q) / (d * d * (d + 2)))
    U = np.array([waves_of(q, d, r) for r in range(blocks)])
    for name, g in gradients(d).items():
        estimates = d / q * np.einsum("rlj,rl->rj", U, U @ g)
        errors = ((estimates - g) ** 2).sum(axis=1)
        assert errors.std() < 1.15 * uniform, name
        assert errors.mean() == pytest.approx((d - q) / q, abs=5 * errors.std() / np.sqrt(blocks) + 1e-10), name


@pytest.mark.parametrize("d", [41, 64, 300])
def test_a_whole_cycle_of_hartley_directions_leaves_no_error_on_a_linear_function(d):
    u, block = rows("orthogonal", d, d)
    for g in gradients(d).values():
        assert np.abs(block.combine(u @ g) - g).max() < 1e-13


def test_our_own_cosines_are_right_to_the_last_bits():
    for d in (1, 2, 3, 8, 12, 97, 1000):
        cosines, sines, turns = np.empty(d), np.empty(d), np.empty(d, np.int64)
        for frequency in {0, 1 % d, d // 8, d // 2, d - 1}:
            waves(cosines, sines, turns, d, frequency, d)
            angles = 2 * np.pi * (np.arange(d) * frequency % d) / d
            assert np.abs(cosines - np.cos(angles)).max() < 1e-15
            assert np.abs(sines - np.sin(angles)).max() < 1e-15


def test_hartley_blocks_have_the_bits_of_before_on_any_number_of_threads():
    def digest(q, d, s2):
        return hashlib.blake2b(rows("orthogonal", q, d, s2)[0].tobytes(), digest_size=8).hexdigest()

    expected = {
        (100, 11, 11): "9565933bed37a22a",
        (64, 64, 64): "ae105af4671c20bb",
        (40, 3001, 3001): "1c4e0e5299b155ef",
        (12, 100003, 100003): "ef5e0677e5ffa781",
        (40, 50, 25): "f153e897751de46a",
    }
    with ThreadPoolExecutor(4) as threads:
        found = dict(zip(expected, threads.map(lambda shape: digest(*shape), expected), strict=True))
    assert found == expected


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
