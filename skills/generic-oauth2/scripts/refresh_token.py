"""Get a new access token before the old one runs out."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from refreshing import refresh

from silas_skill.account import answer_once

answer_once(refresh)
