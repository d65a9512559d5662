"""The theory of zeroth-order hard thresholding as functions.

Arguments are named as in the paper and passed by keyword. An argument out of range raises ValueError with the condition
that it violates. "The paper" is Yuan, de Vazelhes, Gu and Xiong, ICLR 2024. Where its printed form cannot be correct,
these functions have the repaired one, and `errata` has both. To estimate the curvatures of a black box from queries,
see `zerothresh.advice.probing`.

>>> from zerothresh import theory
>>> theory.eps_Ic(d=50, q=10, s=12, s2=50)
2.307692307692308
>>> theory.alpha(k=5, k_star=5)
Traceback (most recent call last):
ValueError: the theory needs k > k* (at k = k* the bound on the expansivity of H_k is infinite), but k = 5 and k* = 5
"""

from zerothresh.theory import errata
from zerothresh.theory.complexity import (
    Epoch,
    epochs,
    hzo_ht_q,
    hzo_ht_queries,
    hzo_ht_schedule,
    hzo_ht_thresholdings,
    sarah_estimates,
    sarah_queries,
    sarah_thresholdings,
    szoht_queries,
    szoht_thresholdings,
    vr_estimates,
    vr_inner,
    vr_queries,
    vr_thresholdings,
)
from zerothresh.theory.conditions import szoht_k, szoht_least_k, szoht_q, szoht_rate, vr_k, vr_least_k, vr_q
from zerothresh.theory.constants import (
    alpha,
    alpha_tight,
    beta,
    eps_abs,
    eps_I,
    eps_Ic,
    eps_mu,
    second_moment,
    sparsity,
)
from zerothresh.theory.curvature import Constants, Spectrum, of_samples, restricted, spectrum
from zerothresh.theory.errata import ERRATA, Erratum
from zerothresh.theory.intervals import (
    EMPTY,
    Interval,
    pm_eta,
    pm_eta_interval,
    sarah_eta,
    sarah_eta_interval,
    szoht_eta,
    vr_eta,
    vr_eta_interval,
)
from zerothresh.theory.moments import (
    estimate_error,
    memory_error,
    past_gap,
    pm_second_moment,
    sarah_second_moment,
    vr_second_moment,
)
from zerothresh.theory.pm import memory_weights, pm_errors, pm_gamma, pm_rate
from zerothresh.theory.sarah import sarah_delta, sarah_errors, sarah_gamma
from zerothresh.theory.step import AtOptimum, gradients_left, step_bound, szoht_floor
from zerothresh.theory.vr import outgoing_law, vr_delta, vr_errors, vr_gamma, vr_least_m

__all__ = [
    "EMPTY",
    "ERRATA",
    "AtOptimum",
    "Constants",
    "Epoch",
    "Erratum",
    "Interval",
    "Spectrum",
    "alpha",
    "alpha_tight",
    "beta",
    "epochs",
    "eps_I",
    "eps_Ic",
    "eps_abs",
    "eps_mu",
    "errata",
    "estimate_error",
    "gradients_left",
    "hzo_ht_q",
    "hzo_ht_queries",
    "hzo_ht_schedule",
    "hzo_ht_thresholdings",
    "memory_error",
    "memory_weights",
    "of_samples",
    "outgoing_law",
    "past_gap",
    "pm_errors",
    "pm_eta",
    "pm_eta_interval",
    "pm_gamma",
    "pm_rate",
    "pm_second_moment",
    "restricted",
    "sarah_delta",
    "sarah_errors",
    "sarah_estimates",
    "sarah_eta",
    "sarah_eta_interval",
    "sarah_gamma",
    "sarah_queries",
    "sarah_second_moment",
    "sarah_thresholdings",
    "second_moment",
    "sparsity",
    "spectrum",
    "step_bound",
    "szoht_eta",
    "szoht_floor",
    "szoht_k",
    "szoht_least_k",
    "szoht_q",
    "szoht_queries",
    "szoht_rate",
    "szoht_thresholdings",
    "vr_delta",
    "vr_errors",
    "vr_estimates",
    "vr_eta",
    "vr_eta_interval",
    "vr_gamma",
    "vr_inner",
    "vr_k",
    "vr_least_k",
    "vr_least_m",
    "vr_q",
    "vr_queries",
    "vr_second_moment",
    "vr_thresholdings",
]
