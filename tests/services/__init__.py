"""Services of the outside that tests start for themselves: a sign-in by OAuth 2, a mail server, a calendar."""
