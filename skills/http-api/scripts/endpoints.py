"""Which endpoints are declared, and how is one called? Shared by both scripts. No redirect, no credential, once."""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path("/sandbox")
SLOT = re.compile(r"\{(\w+)\}")
MOST_BYTES, SHOWN, SECONDS = 200_000, 8_000, 12


def read_args():
    return json.loads((ROOT / "work/call.json").read_text())["args"]


def answer(**value):
    print(json.dumps(value))
    sys.exit(0)


def refuse(sentence):
    answer(refused=sentence)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address was not declared."""

    def redirect_request(self, *args, **kwargs):
        return None


def declared(name, methods):
    endpoint = json.loads((ROOT / "skill/assets/endpoints.json").read_text()).get(name)
    if endpoint is None or endpoint["method"] not in methods:
        refuse(f"No endpoint of this kind is declared as {name}.")
    return endpoint


def address_of(endpoint, values):
    """Values are quoted, so that none can change which host or path is meant."""
    slots, query = set(SLOT.findall(endpoint["url"])), set(endpoint.get("query", ()))
    missing, extra = slots - set(values), set(values) - slots - query
    if missing or extra:
        refuse(f"The endpoint needs other values: {', '.join(sorted(missing | extra))}.")
    if any(value in ("", ".", "..") for name, value in values.items() if name in slots):
        refuse("A value of the address is empty.")
    url = SLOT.sub(lambda slot: urllib.parse.quote(values[slot[1]], safe=""), endpoint["url"])
    told = {name: values[name] for name in sorted(query & set(values))}
    return f"{url}?{urllib.parse.urlencode(told)}" if told else url


def call(endpoint, values, body=None):
    """(status, what came back). Refuses when nobody answers."""
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if body is not None else {})}
    address = address_of(endpoint, values)
    request = urllib.request.Request(address, body, headers, method=endpoint["method"])  # noqa: S310
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=SECONDS) as response:
            return response.status, _read(response)
    except urllib.error.HTTPError as error:
        return error.code, _read(error)
    except (OSError, ValueError):
        refuse("The endpoint cannot be reached.")


def _read(response):
    raw = response.read(MOST_BYTES + 1)
    try:
        value = json.loads(raw) if len(raw) <= MOST_BYTES else None
    except ValueError:
        value = None
    if value is not None and len(json.dumps(value)) <= SHOWN:
        return value
    return raw[:SHOWN].decode("utf-8", "replace")
