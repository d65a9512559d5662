"""Curves of one variable interpolate their samples, are exact for quadratics, and extrapolate sensibly."""

from __future__ import annotations

import numpy as np
import pytest

from zerothresh.methods.auto.models.curves import Curves, Splines
from zerothresh.methods.auto.settings.single_index_settings import CURVES


def parabolas(z):
    """Return values and derivatives of three parabolas, one per row; the second derivatives are 3, 0.2 and 0."""
    a, b, c = np.array([[1.5, -2.0, 4.0], [0.1, 3.0, 0.0], [0.0, 7.0, -1.0]]).T[:, :, None]
    return a * z**2 + b * z + c, 2 * a * z + b, np.broadcast_to(2 * a, z.shape)


def sampled(f, places):
    """Sample f at places, with one curve per row."""
    curves = Curves(len(places))
    for z in places.T:
        curves.add(z, f(z[:, None])[:, 0])
    return curves


@pytest.mark.parametrize("count", [3, 4, 7, 10])
def test_quadratics_are_exact_everywhere(count):
    rng = np.random.default_rng(count)
    places = np.sort(rng.normal(0, 2, (3, count)), axis=1)
    splines = Splines(places, parabolas(places)[0])
    for place in (-9.0, -0.3, 0.0, 1.1, 12.0):
        z = np.full(3, place)
        for found, true in zip(splines.at(z), parabolas(z[:, None]), strict=True):
            np.testing.assert_allclose(found, true[:, 0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_curve_passes_through_its_samples(count):
    rng = np.random.default_rng(count)
    places, values = np.sort(rng.normal(0, 2, (4, count)), axis=1), rng.normal(0, 1, (4, count))
    splines = Splines(places, values)
    for j in range(count):
        np.testing.assert_allclose(splines.at(places[:, j])[0], values[:, j], atol=1e-12)


def test_slope_and_curvature_are_the_continuous_derivatives_of_the_value():
    places = np.array([[-2.0, -1.0, 0.5, 1.0, 3.0]])
    splines = Splines(places, np.exp(places))
    h = 1e-5
    for z in np.linspace(-4, 5, 91)[:, None] + 0.0013:  # no node of the spline is within h
        (_value, slope, curvature), up, down = splines.at(z), splines.at(z + h), splines.at(z - h)
        assert slope == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-5, abs=1e-7)
        assert curvature == pytest.approx((up[1] - down[1]) / (2 * h), rel=1e-5, abs=1e-6)
    for z in places.T:
        below, above = splines.at(z - 1e-12), splines.at(z + 1e-12)
        np.testing.assert_allclose(below, above, atol=1e-8)


def test_smooth_curves_are_approximated_well_between_their_samples():
    places = np.linspace(-2, 2, 9)[None]
    splines = Splines(places, np.log1p(np.exp(-places)))
    for z in np.linspace(-1.5, 1.5, 40)[:, None]:
        p = 1 / (1 + np.exp(-z))
        value, slope, curvature = splines.at(z)
        assert value == pytest.approx(np.log1p(np.exp(-z)), abs=1e-3)
        assert slope == pytest.approx(p - 1, abs=5e-3)
        assert curvature == pytest.approx(p * (1 - p), abs=0.03)


def test_beyond_the_samples_a_curve_is_a_parabola_and_never_concave():
    places = np.array([[-1.0, 0.0, 1.0]])
    rising, falling = Splines(places, places**2), Splines(places, -(places**2))
    z = np.array([10.0])
    assert rising.at(z)[0] == pytest.approx(100.0)
    value, slope, _ = falling.at(z)  # concave at its end: continues as a line
    assert value == pytest.approx(-1.0 - 2.0 * 9.0)
    assert slope == pytest.approx(-2.0)


def test_one_value_is_a_constant_and_two_are_a_line():
    z = np.array([5.0])
    assert [float(part[0]) for part in Splines(np.array([[1.0]]), np.array([[3.0]])).at(z)] == [3.0, 0.0, 0.0]
    line = Splines(np.array([[0.0, 1.0]]), np.array([[1.0, 3.0]]))
    assert [float(part[0]) for part in line.at(z)] == [11.0, 2.0, 0.0]


def test_the_nearest_samples_are_used_and_no_two_that_are_too_close():
    rng = np.random.default_rng(0)
    curves = sampled(np.sin, rng.uniform(-3, 3, (4, 40)))
    centre = np.array([-1.0, 0.0, 1.0, 2.0])
    splines = curves.centre(centre, np.full(4, 0.05))
    assert 3 <= splines.z.shape[1] <= CURVES.max_nodes
    used = [row[:count] for row, count in zip(splines.z, splines.counts, strict=True)]
    assert all((np.diff(row) > 0.05).all() for row in used)
    assert all(row[0] == z.min() and row[-1] == z.max() for row, z in zip(used, curves.z, strict=True))
    nearest = np.abs(curves.z - centre[:, None]).min(axis=1)
    assert [np.abs(row - z).min() for row, z in zip(used, centre, strict=True)] == nearest.tolist()
    np.testing.assert_allclose(splines.at(centre)[0], np.sin(centre), atol=5e-3)


def test_further_curves_keep_their_own_samples_whatever_their_number():
    one, other = (
        sampled(np.square, np.array([[0.0, 1.0, 2.0, 4.0]])),
        sampled(np.square, np.array([[-1.0, 0.5, 3.0]] * 2)),
    )
    for first, second in ((one, other), (other, one)):
        both = Curves(0)
        both.extend(first)
        both.extend(second)
        assert len(both) == 3
        z = np.array([1.5, -0.5, 2.0])
        value, slope, curvature = both.centre(z, np.full(3, 1e-6)).at(z)
        np.testing.assert_allclose(value, z**2, atol=1e-9)
        np.testing.assert_allclose(slope, 2 * z, atol=1e-9)
        np.testing.assert_allclose(curvature, 2.0, atol=1e-9)


@pytest.mark.parametrize("places", [np.zeros((2, 5)), np.array([[0.0, 1.0, 1.0, 1.0, 2.0]] * 2)])
def test_repeated_samples_do_no_harm(places):
    splines = sampled(np.square, places).centre(np.zeros(2), np.full(2, 1e-9))
    for part in splines.at(np.array([0.0, 1.5])):
        assert np.isfinite(part).all()


def test_the_shape_does_not_depend_on_the_units():
    places = np.array([[-1.0, 0.0, 0.7, 2.0]])
    plain = Splines(places, np.cos(places)).at(np.array([0.4]))
    for c in (1e-100, 1e100):
        for found, true in zip(Splines(places, c * np.cos(places)).at(np.array([0.4])), plain, strict=True):
            assert found / c == pytest.approx(true, rel=1e-9)
        moved = Splines(c * places, np.cos(places)).at(np.array([0.4 * c]))
        assert moved[0] == pytest.approx(plain[0], rel=1e-9)
        assert moved[1] * c == pytest.approx(plain[1], rel=1e-9)
