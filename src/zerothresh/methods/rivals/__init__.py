"""The state of the art beside the paper's methods: one file each, written from its own paper."""

from zerothresh.methods.rivals.ada_zoro import AdaZORO
from zerothresh.methods.rivals.es_swaps import ESSwaps
from zerothresh.methods.rivals.grace import GraCe
from zerothresh.methods.rivals.ht_es import HTES
from zerothresh.methods.rivals.hzo_ht import HZOHT, Ball
from zerothresh.methods.rivals.outside import Outside
from zerothresh.methods.rivals.rspgf import RSPGF
from zerothresh.methods.rivals.sarah_plus import SARAHPlus
from zerothresh.methods.rivals.sparse_rs import SparseRS
from zerothresh.methods.rivals.szoht_theory import SZOHTTheory
from zerothresh.methods.rivals.zo_adamm import ZOAdaMM
from zerothresh.methods.rivals.zo_prox_svrg import ZOProxSVRG
from zerothresh.methods.rivals.zo_sgd import ZOSGD
from zerothresh.methods.rivals.zo_spider import ZOSPIDER
from zerothresh.methods.rivals.zo_svrg import ZOSVRG
from zerothresh.methods.rivals.zoro import ZORO
from zerothresh.methods.rivals.zscg import ZSCG

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
    "Outside",
    "SARAHPlus",
    "SZOHTTheory",
    "SparseRS",
    "ZOAdaMM",
    "ZOProxSVRG",
]
