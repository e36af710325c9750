"""The keys that approvers sign with. Only this room reaches the private halves (`signing`)."""
