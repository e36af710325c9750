"""In which words is each event of connections to outside accounts told? A table, no code (`sentences`)."""

from __future__ import annotations

CONNECTIONS: dict[str, tuple[str, str, str]] = {
    "connection_proposed": ("ask", "{who} wants an account connected", "{what}"),
    "connection_moved:active": ("ok", "An account is connected", "{what}"),
    "connection_moved:failed": ("bad", "A connection does not work", "{what}: {reason}"),
    "connection_moved:paused": ("", "{who} paused a connection", "{what}"),
    "connection_moved": ("", "A connection moved on", "{what} is now {status}"),
    "connection_removed": ("", "{who} removed a connection", "{what}, and its credentials"),
    "connection_chosen": ("", "{who} chose the account that tools use", "{what}"),
    "connection_widened": ("ok", "A connection may do more", "{what}: {count} permissions"),
    "connection_refused": ("bad", "Did not use a connection", "{what}: {reason}"),
    "connection_refreshed": ("", "Renewed a sign-in", "{what}"),
    "connection_recovered": ("ok", "A connection came back by itself", "{what}"),
    "proactive_refresh_dormant": ("", "Renewed the sign-in of an unused connection", "{what}"),
    "connection_warned": ("ask", "A sign-in is about to end", "{what}: in {days} days"),
    "permission_once": ("", "Allowed a permission for one use", "{what}"),
    "setup_begun": ("", "Began to set up a connection", "{what}"),
    "setup_asked": ("ask", "Setting up a connection needs a person", "{what}: {step}"),
    "setup_answered": ("", "{who} answered what a set-up asked", "{what}: {step}"),
    "setup_ended:done": ("ok", "A connection was set up", "{what}"),
    "setup_ended": ("bad", "A connection was not set up", "{what}: {reason}"),
    "credentials_kept": ("", "Stored credentials, sealed", "{what}: {count}"),
    "it_request_drafted": ("", "Prepared a message to the IT department", "{what}"),
    "secrets_resealed": ("", "Sealed anew what is secret", ""),
}
