"""The sections of a calibration report: functions from `ReportData` to the content below a title."""
