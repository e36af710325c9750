"""Rules of the safety loop. No Django, no clock."""
