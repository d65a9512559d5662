"""The race: who gets calls, what a wrong choice costs at most, and what reaches the user."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.race import race
from zerothresh.methods.auto.settings.race_settings import RACE

D = 8
CENTRE = np.array([1.0, -2, 0, 0, 0, 0, 0, 0])


def bowl(x):
    return float(((x - CENTRE) ** 2).sum()) + 7.0


@dataclass(frozen=True)
class Toy:
    """An arm that walks from the start to the centre in so many calls, or stays where it is."""

    name: str
    decisive = False
    calls: int = 0  # calls until it is at the centre; 0: it never gets there
    first: int = 4  # its trial
    sure: bool = False  # whether it says that its assumption is confirmed
    ends: int = 10**9  # calls after which it ends
    certified: bool = False
    width: int = 1  # calls of a round
    asked: list[int] = field(default_factory=list)

    def fits(self, context, diagnosis):
        return True

    def forecast(self, context, diagnosis):
        return self.first

    def search(self, context, diagnosis):
        context.confirmed = self.sure
        made = 0
        while made < self.ends:
            share = min(1.0, (made + self.width) / self.calls) if self.calls else 0.0
            point = context.constraint.project(share * CENTRE)
            values = yield from context.values([point] * self.width)
            made += self.width
            self.asked.append(context.used)
            if context.fun is None or float(values[0].mean()) < context.fun:
                context.move(point, float(values[0].mean()))
        return Ended(f"{self.name} is done.", self.certified)


@dataclass(frozen=True)
class Raced(zt.Program):
    """A program that races some arms."""

    arms: tuple
    patience: int | None = None

    def search(self, context):
        context.stage("diagnosis")
        diagnosis = yield from diagnose(context)
        ended = yield from race(context, diagnosis, self.arms, self.patience)
        context.certified = ended.certified


def run(*arms, budget=400, patience=None, fun=bowl):
    result = zt.minimize(fun, D, 2, budget=budget, method=Raced(arms, patience), seed=0, progress=False)
    return result, [len(arm.asked) * arm.width for arm in arms]


def test_an_arm_that_makes_progress_gets_the_calls_and_the_others_their_share():
    idle, good = Toy("idle"), Toy("good", calls=200)
    result, (wasted, used) = run(idle, good, budget=250)
    assert result.fun == pytest.approx(7.0)
    assert used > 0.85 * (used + wasted)
    assert wasted >= RACE.insurance * (used + wasted) / 2


def test_the_order_of_arms_does_not_decide_the_race():
    ends = [run(*arms)[0].fun for arms in ((Toy("a"), Toy("b", calls=150)), (Toy("b", calls=150), Toy("a")))]
    assert ends == pytest.approx([7.0, 7.0])


def test_a_confirmed_arm_leads_while_it_gains():
    sure, other = Toy("sure", calls=100, sure=True), Toy("other", calls=50)
    run(sure, other, budget=104)
    assert len(sure.asked) >= 90


def test_a_confirmed_arm_that_gains_nothing_more_wastes_no_more_than_it_has_used():
    sure, other = Toy("sure", sure=True, first=40), Toy("other", calls=60, first=10)
    result, (wasted, _) = run(sure, other, budget=140)
    assert result.fun == pytest.approx(7.0)
    assert wasted <= 40 + 3 * RACE.slice_values


def test_a_certificate_ends_the_race_and_counts_as_success():
    result, _ = run(Toy("walks", calls=300), Toy("proves", calls=5, ends=10, certified=True))
    assert result.status is zt.Status.CONVERGED
    assert result.success
    assert result.fun == pytest.approx(7.0)
    assert result.nfev < 100


def test_patience_ends_a_race_without_gains():
    result, _ = run(Toy("stops", calls=20), patience=100)
    assert result.status is zt.Status.CONVERGED
    assert 100 <= result.nfev <= 150
    assert "patience" in result.message


def test_a_round_that_does_not_fit_does_not_end_the_race():
    wide, narrow = Toy("wide", calls=40, width=300), Toy("narrow", calls=100)
    result, _ = run(wide, narrow, budget=250)
    assert result.fun == pytest.approx(7.0)
    assert not wide.asked


def test_the_best_point_of_any_arm_is_the_result():
    first, second = Toy("first", calls=10, ends=10), Toy("second", calls=10_000)
    result, _ = run(first, second)
    assert result.fun == pytest.approx(7.0)


def test_stages_name_who_made_which_calls():
    result, (one, other) = run(Toy("one"), Toy("other", calls=100), budget=300)
    names = {name for _, name in result.stages}
    assert names == {"diagnosis", "one", "other"}
    begins = [begin for begin, _ in result.stages]
    assert begins == sorted(begins)
    ends = [*begins[1:], result.nfev]
    made = sum(end - begin for (begin, name), end in zip(result.stages, ends, strict=True) if name == "one")
    assert made == one
    assert one + other < 300


@pytest.mark.parametrize(("unit", "offset"), [(1.0, -1e3), (2.0**40, 0.0), (2.0**-40, 0.0), (1.0, 50.0)])
def test_a_race_depends_on_neither_the_unit_nor_the_offset_of_F(unit, offset):
    plain = run(Toy("a", calls=300), Toy("b", calls=120))[1]
    other = run(Toy("a", calls=300), Toy("b", calls=120), fun=lambda x: unit * bowl(x) + offset)[1]
    assert abs(plain[0] - other[0]) <= 30  # the diagnosis may take more calls, and shift the slices
    assert plain == other or offset
