"""Every number on which a decision of `auto` depends, with its reason or the ablation that chose it.

All of them are dimensionless: ratios of differences of F to noise, of lengths to lengths, of calls to calls. Nothing
here is compared with F itself, so that no decision depends on the unit or the offset of F, nor on the unit of x.
Each part of `auto` has one frozen dataclass, and one instance of it with the values in use.
"""

from __future__ import annotations

from dataclasses import dataclass  # noqa: F401

EPS = 2.0**-52  # relative spacing of floating-point numbers: the only place where |F| itself counts
TINY = 1e-300  # lower limit of divisors


# --- Diagnosis: noise, lengths, kinks -------------------------------------------------------------------------------


# --- Active subset: few coordinates matter --------------------------------------------------------------------------


# --- Grouped slopes: fewer calls than coordinates -------------------------------------------------------------------


# --- Single index: components are losses of linear scores -----------------------------------------------------------


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


# --- Support search: exchanges and restarts with the rest of the budget ---------------------------------------------


# --- The race -------------------------------------------------------------------------------------------------------
