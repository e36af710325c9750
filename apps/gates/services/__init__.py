"""Run gates (`runner`), and change them (`versions`)."""

from apps.gates.services.runner import check_gates, scripts_due
from apps.gates.services.versions import activate, retire, roll_back, save_gate, write_version

__all__ = ["activate", "check_gates", "retire", "roll_back", "save_gate", "scripts_due", "write_version"]
