"""Two small tables of real data, which come with the package."""

from zerothresh.datasets.tables import Table, load_autoprice, load_bodyfat

__all__ = ["Table", "load_autoprice", "load_bodyfat"]
