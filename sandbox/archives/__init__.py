"""Untrusted archives: `reader` asks for their contents, `unpacking` opens them, inside the sandbox only."""
