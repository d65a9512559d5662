"""The version, in a place that everything can import."""

__version__ = "0.1.0"
