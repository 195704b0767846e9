"""Reports for people: self-contained HTML pages, and plots as PNG files."""

from jointwise.report.calibration import write_report
from jointwise.report.plots import plot_prediction

__all__ = ["plot_prediction", "write_report"]
