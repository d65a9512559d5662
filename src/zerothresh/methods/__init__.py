"""The methods: one file each, readable beside the paper's listing."""

from zerothresh.methods.auto import Auto
from zerothresh.methods.base import Iterate, Method, make, methods, name_of, register
from zerothresh.methods.fgzoht import FGZOHT
from zerothresh.methods.guided_saga import GuidedSAGA
from zerothresh.methods.htp import HTP
from zerothresh.methods.index import Index
from zerothresh.methods.laws import AllOrNothing, FixedSize, Law
from zerothresh.methods.lsvrg_szht import LSVRGSZHT
from zerothresh.methods.niht import NIHT
from zerothresh.methods.p_saga_szht import PSAGASZHT
from zerothresh.methods.pm_szht import PMSZHT
from zerothresh.methods.program import Program, Room
from zerothresh.methods.rivals import (
    HTES,
    HZOHT,
    RSPGF,
    ZORO,
    ZOSGD,
    ZOSPIDER,
    ZOSVRG,
    ZSCG,
    AdaZORO,
    Ball,
    ESSwaps,
    GraCe,
    Outside,
    SARAHPlus,
    SparseRS,
    SZOHTTheory,
    ZOAdaMM,
    ZOProxSVRG,
)
from zerothresh.methods.saga_szht import SAGASZHT
from zerothresh.methods.sarah_szht import SARAHSZHT
from zerothresh.methods.szoht import SZOHT
from zerothresh.methods.vr_szht import VRSZHT

__all__ = [
    "FGZOHT",
    "HTES",
    "HTP",
    "HZOHT",
    "LSVRGSZHT",
    "NIHT",
    "PMSZHT",
    "PSAGASZHT",
    "RSPGF",
    "SAGASZHT",
    "SARAHSZHT",
    "SZOHT",
    "VRSZHT",
    "ZORO",
    "ZOSGD",
    "ZOSPIDER",
    "ZOSVRG",
    "ZSCG",
    "AdaZORO",
    "AllOrNothing",
    "Auto",
    "Ball",
    "ESSwaps",
    "FixedSize",
    "GraCe",
    "GuidedSAGA",
    "Index",
    "Iterate",
    "Law",
    "Method",
    "Outside",
    "Program",
    "Room",
    "SARAHPlus",
    "SZOHTTheory",
    "SparseRS",
    "ZOAdaMM",
    "ZOProxSVRG",
    "make",
    "methods",
    "name_of",
    "register",
]
