"""One calendar over CalDAV (RFC 4791): requests, and the little of iCalendar (RFC 5545) that is needed."""

import base64
import hashlib
import re
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta

from silas_skill.account import Failure, call, check_status, settings

SPACES = {"d": "DAV:", "c": "urn:ietf:params:xml:ns:caldav"}
OURS = "silas-"
PROPERTIES = b'<propfind xmlns="DAV:"><prop><displayname/><resourcetype/></prop></propfind>'
QUERY = """<c:calendar-query xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><prop><c:calendar-data/></prop>
<c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"><c:time-range start="{start}" end="{end}"/>
</c:comp-filter></c:comp-filter></c:filter></c:calendar-query>"""


class Calendar:
    """The calendar of the settings, opened with the password that is held."""

    def __init__(self, password):
        self.url = settings()["url"].rstrip("/") + "/"
        both = f"{settings()['username']}:{password}".encode()
        self.headers = {"Authorization": "Basic " + base64.b64encode(both).decode()}

    def ask(self, method, url, body=None, **headers):
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return call(method, url, body=body, headers={**self.headers, **more})

    def open(self):
        """(its name, milliseconds)."""
        started = time.monotonic()
        found = self._found("PROPFIND", self.url, PROPERTIES, "0")
        name = found.findtext(".//d:displayname", "", SPACES)
        return name, int(1000 * (time.monotonic() - started))

    def siblings(self):
        """Name and address of each calendar beside it."""
        home = urllib.parse.urljoin(self.url, "..")
        found = self._found("PROPFIND", home, PROPERTIES, "1")
        rows = [row for row in found.findall("d:response", SPACES) if row.find(".//c:calendar", SPACES) is not None]
        return [
            {"name": row.findtext(".//d:displayname", "", SPACES), "path": row.findtext("d:href", "", SPACES)}
            for row in rows
        ]

    def events(self, day):
        start = datetime.fromisoformat(day)
        said = QUERY.format(start=f"{start:%Y%m%dT000000Z}", end=f"{start + timedelta(days=1):%Y%m%dT000000Z}")
        found = self._found("REPORT", self.url, said.encode(), "1")
        return [described(data.text or "") for data in found.findall(".//c:calendar-data", SPACES)]

    def put(self, event, text):
        """Once: what is there under this name is left as it is."""
        kind = "text/calendar; charset=utf-8"
        status, told, _ = self.ask("PUT", self.place(event), text.encode(), If_None_Match="*", Content_Type=kind)
        if status != 412:
            check_status(status, told)

    def read(self, event):
        """Its text, or "" where there is none."""
        status, told, body = self.ask("GET", self.place(event))
        if status in (404, 410):
            return ""
        check_status(status, told)
        return body.decode("utf-8", "replace")

    def delete(self, event):
        status, told, _ = self.ask("DELETE", self.place(event))
        if status not in (404, 410):
            check_status(status, told)

    def place(self, event):
        return f"{self.url}{OURS}{event}.ics"

    def _found(self, method, url, body, depth):
        status, told, answer = self.ask(method, url, body, Depth=depth, Content_Type="application/xml; charset=utf-8")
        check_status(404 if status != 207 and status < 300 else status if status != 207 else 200, told)
        if b"<!DOCTYPE" in answer or b"<!ENTITY" in answer:
            raise Failure("service_unavailable", "The calendar answered with something that is not read.")
        try:
            return ElementTree.fromstring(answer)  # noqa: S314 - no entities, see above
        except ElementTree.ParseError:
            raise Failure("service_unavailable", "The calendar answered with something that cannot be read.") from None


def name_of(effect_key):
    return hashlib.sha256(str(effect_key).encode()).hexdigest()[:32]


def written(event, title, start, minutes, now):
    """One appointment at the calendar's own local time."""
    begins = datetime.fromisoformat(start)
    ends = begins + timedelta(minutes=minutes)
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//silas//caldav//EN",
        "BEGIN:VEVENT",
        f"UID:{OURS}{event}",
        f"DTSTAMP:{datetime.fromisoformat(now):%Y%m%dT%H%M%SZ}",
        f"DTSTART:{begins:%Y%m%dT%H%M%S}",
        f"DTEND:{ends:%Y%m%dT%H%M%S}",
        f"SUMMARY:{escaped(title)}",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return "".join(f"{folded(line)}\r\n" for line in lines)


def described(text):
    fields = dict(re.findall(r"^(SUMMARY|DTSTART|DTEND)[^:\r\n]*:(.*?)\r?$", unfolded(_event(text)), re.MULTILINE))
    title = re.sub(r"\\([,;\\])", r"\1", fields.get("SUMMARY", "")).replace("\\n", " ")
    return {"title": title, "start": fields.get("DTSTART", ""), "end": fields.get("DTEND", "")}


def _event(text):
    return text.partition("BEGIN:VEVENT")[2].partition("END:VEVENT")[0]


def unfolded(text):
    return re.sub(r"\r?\n[ \t]", "", text)


def folded(line):
    """No line longer than 75 octets; none is cut within a character."""
    pieces, room = [""], 74
    for letter in line:
        if len((pieces[-1] + letter).encode()) > room:
            pieces.append("")
        pieces[-1] += letter
    return "\r\n ".join(pieces)


def escaped(title):
    return re.sub(r"([\\,;])", r"\\\1", title)
