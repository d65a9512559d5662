"""When the first calls show noise, curvature, kinks, jumps and plateaus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DiagnosisSettings:
    """When the first calls show noise, curvature, kinks, jumps and plateaus."""

    # Values and noise.
    noise_points: int = 7  # equidistant points of ECnoise: six differences, as Moré and Wild recommend
    noise_spacing: float = 1e-3  # of the step that shows a difference: the smooth part cancels over so short a line
    orders_agree: float = 4.0  # successive orders of differences within this factor show noise (Moré and Wild)
    start_repeats: int = 6  # values at the start from which random noise is measured, up to a factor of 1.4 mostly
    random_repeats: int = 2  # calls per value if values are random: they measure the noise elsewhere
    distant_repeats: int = 4  # the same if noise does not show at the start: then nothing else measures it
    floor: float = 4.0  # standard deviations from which a difference is more than noise
    random_floor: float = 8.0  # the same for random values, whose noise is known less well
    rounding: float = 8.0  # units of rounding that an ordinary sum loses
    batch_rounding: float = 64.0  # the same between two calls whose batches differ
    noise_growth: float = 2.5  # times the noise at the start: more is chance in 1 of 25 cases (F test)
    other_noise: float = 3.0  # times the noise so far: more is chance in 1 of 60 cases, and is not pooled with it
    mean_square_step: float = 2.9  # of noise at h and 2h that grows with the square: sqrt((1 + 16) / 2), in h^2
    clear: float = 10.0  # noise floors from which a difference is clear
    most_decimals: int = 8  # decimal digits to which values may have been rounded
    decimal_range: float = 1e12  # a number with more digits before and after the point is not a decimal one
    strong_noise: float = 0.1  # noise over the change at stake above which single steps cannot be judged

    # The quick check: four values of a smooth function without noise.
    min_calls: int = 100  # with fewer calls left, only the quick check is made
    quick_step: float = 1e-3  # of the first length: third order terms are below the tolerance, rounding too
    quick_components: int = 3  # that give the natural length; one alone is too short by a factor of 10 in 1 of 10 draws
    same_curvature: float = 0.03  # second differences to both sides of a smooth function agree up to this share
    least_quick_bend: float = 1e-7  # second over first difference: below it, rounding may have made the curvature
    most_quick_bend: float = 3e-2  # above it, noise may look like curvature; to one side the step may be too long
    quick_rounding: float = 300.0  # units of rounding by which a second difference must stand out
    longest_quick_length: float = 1e6  # in steps of the quick check: beyond it the function is linear

    # The search for the natural length.
    first_step: float = 1e-4  # of the first length: a step too short costs less than one too long
    most_rounds: int = 20  # steps that are tried at most
    longest_step: float = 1e8  # of the first length: what shows nothing up to there is flat or linear
    lengthen: float = 10.0  # a step that shows a slope alone is lengthened by this factor
    lengthen_flat: float = 30.0  # a step that shows nothing
    least_bend: float = 0.03  # second over first difference: between these two, slope and curvature both show
    most_bend: float = 1.2
    aim: float = 0.3  # the bend that the next step aims at
    most_shortening: float = 1e-4  # factors of one change of the step
    most_lengthening: float = 1e3
    shortest_length: float = 0.3  # natural length in steps: it is not trusted further from what was seen
    longest_length: float = 30.0
    most_switches: int = 2  # other components to try if the first one seems to be stationary at the start

    # Kinks, jumps and stationary starts.
    kink_share: float = 0.2  # a second difference across the start above this share of the first may be a kink
    kink_ratio: float = 5.0  # and if it is above this multiple of the second difference on one side
    kink_checks: int = 3  # two much shorter steps tell a kink from a step that is too long; then back again
    kink_shortening: float = 1e-3
    kink_rounds: int = 4  # lengthenings to find out how far a kink dominates
    kink_curvature: float = 0.3  # of slope over length: the curvature that stands in for that of a kink
    straight_share: float = 0.05  # a function straight up to this share of a step
    bent: float = 0.1  # and bent by this much over it has a kink in between
    jump_growth: float = 3.0  # a first difference that grows by less than this
    jump_lengthening: float = 20.0  # over a step that grew by more than this is a jump
    plateau_order: int = 4  # the highest order with which a smooth function may begin before it counts as flat
    even_share: float = 0.1  # a first difference with a smaller odd part has no slope
    shorten_even: float = 0.01  # how fast the step shrinks to look for a slope
    even_shortening: float = 1e-6  # of the first such step: if no slope shows up to there, the start is stationary
    even_rounds: int = 6  # lengthenings to find where F departs from its parabola
    even_departure: float = 0.4  # from the ratio 2 of second to first difference of a parabola

    # Difference steps (Moré and Wild 2012).
    step_factor: float = 1.68  # 8^(1/4): minimises the error of a forward difference
    random_step_factor: float = 8.0  # longer if values are random: central differences, whose bias is of third order
    shortest_step: float = 1e-7  # of the natural length: rounding in x must not show
    longest_share_of_box: float = 0.25  # of its width: a difference over more says little about the slope
    central_above: float = 0.02  # of the natural length: a forward step this long is biased by more than 1 %
    curvature_share: float = 0.1  # of the length along a gradient: the shortest step of a second difference
    curvature_step: float = 3.0  # times length^(1/2) (noise/curvature)^(1/4): balances noise and fourth order
    cubic_step: float = 2.0  # times the cube root of the relative noise: balances noise and third order
    shortest_central: float = 1e-5  # of the length along a gradient


DIAGNOSIS = DiagnosisSettings()
