"""How are gates run (`running`), and who may change what they say (`versions`)?"""

from apps.gates.services.runner import check_gates
from apps.gates.services.versions import activate, retire, roll_back, save_gate, write_version

__all__ = ["activate", "check_gates", "retire", "roll_back", "save_gate", "write_version"]
