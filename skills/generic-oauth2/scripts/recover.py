"""Something is wrong: try a refresh once, before a person is asked."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering
from refreshing import refresh

answering(refresh)
