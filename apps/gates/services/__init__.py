"""Run gates (`runner`), evaluate them over recorded input (`backtest`), and change them (`versions`)."""

from apps.gates.services.runner import check_gates
from apps.gates.services.versions import activate, retire, roll_back, save_gate, write_version

__all__ = ["activate", "check_gates", "retire", "roll_back", "save_gate", "write_version"]
