"""The methods of the paper, one file each, readable beside its listings."""

from zerothresh.methods.paper.fgzoht import FGZOHT
from zerothresh.methods.paper.laws import AllOrNothing, FixedSize, Law
from zerothresh.methods.paper.lsvrg_szht import LSVRGSZHT
from zerothresh.methods.paper.p_saga_szht import PSAGASZHT
from zerothresh.methods.paper.pm_szht import PMSZHT
from zerothresh.methods.paper.saga_szht import SAGASZHT
from zerothresh.methods.paper.sarah_szht import SARAHSZHT
from zerothresh.methods.paper.szoht import SZOHT
from zerothresh.methods.paper.vr_szht import VRSZHT

__all__ = [
    "FGZOHT",
    "LSVRGSZHT",
    "PMSZHT",
    "PSAGASZHT",
    "SAGASZHT",
    "SARAHSZHT",
    "SZOHT",
    "VRSZHT",
    "AllOrNothing",
    "FixedSize",
    "Law",
]
