"""Methods from the literature: one file per method, each written from its own paper."""

from zerothresh.constraint.two_step import Ball
from zerothresh.methods.literature.ada_zoro import AdaZORO
from zerothresh.methods.literature.es_swaps import ESSwaps
from zerothresh.methods.literature.grace import GraCe
from zerothresh.methods.literature.ht_es import HTES
from zerothresh.methods.literature.hzo_ht import HZOHT
from zerothresh.methods.literature.rspgf import RSPGF
from zerothresh.methods.literature.sarah_plus import SARAHPlus
from zerothresh.methods.literature.sparse_rs import SparseRS
from zerothresh.methods.literature.szoht_theory import SZOHTTheory
from zerothresh.methods.literature.zo_adamm import ZOAdaMM
from zerothresh.methods.literature.zo_prox_svrg import ZOProxSVRG
from zerothresh.methods.literature.zo_sgd import ZOSGD
from zerothresh.methods.literature.zo_spider import ZOSPIDER
from zerothresh.methods.literature.zo_svrg import ZOSVRG
from zerothresh.methods.literature.zoro import ZORO
from zerothresh.methods.literature.zscg import ZSCG

__all__ = [
    "HTES",
    "HZOHT",
    "RSPGF",
    "ZORO",
    "ZOSGD",
    "ZOSPIDER",
    "ZOSVRG",
    "ZSCG",
    "AdaZORO",
    "Ball",
    "ESSwaps",
    "GraCe",
    "SARAHPlus",
    "SZOHTTheory",
    "SparseRS",
    "ZOAdaMM",
    "ZOProxSVRG",
]
