"""A key has nothing to refresh: it holds until somebody changes it."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import answer

answer(success=True, new_expires_at=None)
