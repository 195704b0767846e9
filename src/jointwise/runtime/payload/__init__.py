"""The payload at the tool: identified from logs with a calibrated model."""

from jointwise.runtime.payload.identify import identify_payload
from jointwise.runtime.payload.result import IdentifiedPayload

__all__ = ["IdentifiedPayload", "identify_payload"]
