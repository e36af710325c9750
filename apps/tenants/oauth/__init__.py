"""OAuth 2.1 for apps of third parties: registered apps and grants (`services`), the protocol (`server`) and its
addresses (`views`)."""
