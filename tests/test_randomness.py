from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from zerothresh.sampling.philox import BLOCK, Stream, fill_normals, key_of, seed_of, words


def test_the_generator_is_philox_4x32_10():
    """The known answer of Random123 for a zero counter and a zero key."""
    out = np.empty(BLOCK, np.uint32)
    words(out, 0, 0, 0, 0)
    lanes = BLOCK // 4
    assert [hex(out[i * lanes]) for i in range(4)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_a_counter_with_all_its_parts_matches_numpy_philox_of_another_path():
    """Every part of the counter and of the key changes the words."""
    base = np.empty(BLOCK, np.uint32)
    words(base, 1, 2, 3, 4)
    for arguments in [(2, 2, 3, 4), (1, 3, 3, 4), (1, 2, 4, 4), (1, 2, 3, 5), (1, 2, 3, 4 + (1 << 32))]:
        other = np.empty(BLOCK, np.uint32)
        words(other, *arguments)
        assert (other != base).mean() > 0.99


def test_normals_are_normal():
    out = np.empty(1 << 20)
    fill_normals(out, 3, 5, key_of(0))
    assert stats.kstest(out, "norm").pvalue > 1e-3  # fixed seed
    sigma = len(out) ** -0.5
    assert abs(out.mean()) < 6 * sigma
    assert abs((out**2).mean() - 1) < 6 * np.sqrt(2) * sigma
    assert abs((out**3).mean()) < 6 * np.sqrt(15) * sigma
    assert abs((out**4).mean() - 3) < 6 * np.sqrt(96) * sigma
    assert abs((out[1:] * out[:-1]).mean()) < 6 * sigma
    half = BLOCK // 2  # the two of a Box-Muller pair
    pairs = out.reshape(-1, 2, half)
    assert abs((pairs[:, 0] * pairs[:, 1]).mean()) < 6 * np.sqrt(2) * sigma
    assert np.abs(out).max() < 6.8


def test_no_normal_is_zero_so_that_a_direction_of_one_entry_has_a_length():
    from zerothresh.sampling.philox import normals_of

    edge = np.zeros(BLOCK, np.uint32)
    z = np.empty(BLOCK, np.float32)
    for radius_word in (0, 1, 0xFFFFFFFF, 0xFFFFFF80):
        for angle_word in (0, 0x3FFFFFFF, 0xFFFFFFFF, 0x1FFFFFFF):
            edge[: BLOCK // 2], edge[BLOCK // 2 :] = radius_word, angle_word
            normals_of(z, edge)
            assert (np.abs(z) > 0).all()
            assert np.isfinite(z).all()


def test_any_round_can_be_drawn_alone_and_in_any_order():
    first = [Stream(1, r).integers(1000, 5).tolist() for r in (0, 1, 2)]
    again = [Stream(1, r).integers(1000, 5).tolist() for r in (2, 0, 1)]
    assert first == [again[1], again[2], again[0]]
    assert Stream(2, 0).integers(1000, 5).tolist() != first[0]


def test_seeds_of_any_size_are_keys_that_fit():
    for seed in (0, 1, 2**63, 2**200):
        assert 0 <= key_of(seed) < 2**63
    assert len({key_of(seed) for seed in range(10_000)}) == 10_000


@pytest.mark.parametrize("bad", [-1, 1.5, "a", True, [1]])
def test_a_seed_that_is_no_whole_number_is_refused(bad):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        seed_of(bad)


def test_no_seed_draws_one():
    assert seed_of(None) != seed_of(None)


@pytest.mark.parametrize(("n", "size"), [(5, 2), (5, 5), (100, 3), (100, 90), (7, 1)])
def test_subsets_are_uniform_without_repeats_and_in_random_order(n, size):
    draws = np.array([Stream(9, r).subset(n, size) for r in range(3000)])
    assert all(len(set(row)) == size for row in draws.tolist())
    counts = np.bincount(draws.ravel(), minlength=n)
    expected = 3000 * size / n
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)
    first = np.bincount(draws[:, 0], minlength=n)
    assert np.abs(first - 3000 / n).max() < 6 * np.sqrt(3000 / n)


def test_a_subset_larger_than_the_set_is_refused():
    with pytest.raises(ValueError, match="cannot draw 6 different components out of n = 5"):
        Stream(0, 0).subset(5, 6)


def test_uniforms_go_on_where_they_stopped():
    whole = Stream(4, 4).uniform(1500)
    stream = Stream(4, 4)
    parts = np.concatenate([stream.uniform(3), stream.uniform(700), stream.uniform(797)])
    assert np.array_equal(whole, parts)
    assert 0 <= whole.min() < whole.max() < 1
