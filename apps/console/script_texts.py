"""The texts that the console's scripts show, by the name under which `texts.js` finds them."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def script_texts() -> dict[str, str]:
    """The texts in the active language, with placeholders such as `%(number)s`."""
    return {
        "now": _("now"),
        "ago": _("%(span)s ago"),
        "in": _("in %(span)s"),
        "seconds": _("%(number)s s"),
        "minutes": _("%(number)s min"),
        "hours": _("%(number)s h"),
        # The scripts count in days from two on.
        "days": ngettext("%(number)s day", "%(number)s days", 2),
        "selected": _("%(number)s selected"),
        "is_typing": _("%(name)s is typing"),
        "is_writing": _("%(name)s is writing"),
        "file_kind": _("This type of file can't be sent."),
        "file_too_large": _("This file is too large. Files can have up to %(most)s MB."),
        "file_not_sent": _("We couldn't send this file. Check your connection and send it again."),
        "sending_file": _("Sending %(name)s"),
        "remove_file": _("Remove %(name)s"),
        "saved": _("Saved"),
        "view": _("View"),
        "copied": _("Copied"),
        "press_to_copy": _("Selected: press Ctrl+C to copy"),
        "decided": _("A colleague already decided this."),
        "passkey_added": _(
            "Passkey added. These are your recovery codes. They are shown only once, and each code works once."
        ),
        "no_passkeys": _("Passkeys aren't available here. Open the console over https, or at localhost."),
        "passkey_unused": _("Your passkey wasn't used. Nothing was changed. Try again."),
        "unreachable": _("We couldn't reach the server. Nothing was changed. Check your connection and try again."),
        "broken": _("Something went wrong on our side. Nothing was changed."),
        "asking_browser": _("Asking the browser…"),
        "no_push": _("Push isn't available here. Open the console over https, or at localhost."),
        "push_blocked": _("The browser blocked push notifications. Check its settings for this site."),
        "notice_message": _("New message in your conversation"),
        "notice_waiting": _("A customer is waiting for a person"),
        "notice_card": _("A decision is waiting for you"),
        "notice_mention": _("You were mentioned in a note"),
        "notice_sla": _("A reply is overdue"),
        "no_desktop": _(
            "This browser can't show desktop notifications here. Open the console over https, or at localhost."
        ),
        "desktop_blocked": _(
            "This browser blocks notifications from the console. Allow them in its settings for this site."
        ),
        "desktop_asking": _("Confirm in the browser's own prompt."),
        "desktop_allowed": _("This browser may show notifications. Save to turn them on."),
        "check_connection": _("Check your connection and try again."),
        "secret_not_saved": _("Not saved, and nothing was changed. %(why)s"),
        "chat": _("Chat"),
        "chat_preview": _("Chat preview"),
        "open_chat": _("Open the chat"),
        "white_on_colour": _("Text on this colour is white. Contrast: %(contrast)s."),
        "dark_on_colour": _("Text on this colour is dark. Contrast: %(contrast)s."),
        "links_in_shade": _("Links use a shade that is easy to read."),
    }
