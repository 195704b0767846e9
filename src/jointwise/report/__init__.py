"""What people read: one self-contained HTML page, and plots as pictures."""

from jointwise.report.plots import plot_prediction
from jointwise.report.write import write_report

__all__ = ["plot_prediction", "write_report"]
