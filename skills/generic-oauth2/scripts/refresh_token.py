"""Get a new access token before the old one runs out."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering
from refreshing import refresh

answering(refresh)
