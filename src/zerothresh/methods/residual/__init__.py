"""Methods for functions whose calls return all residuals."""

from zerothresh.methods.residual.gauss_newton_method import GaussNewton

__all__ = ["GaussNewton"]
