"""Reports for people: self-contained HTML pages."""

from jointwise.report.calibration import write_report

__all__ = ["write_report"]
