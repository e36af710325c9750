"""The staff side of conversations: state, assignee, labels, notes, canned replies, lists, and who answers."""
