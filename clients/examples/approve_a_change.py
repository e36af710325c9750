"""Start a conversation, approve what the chatbot asks for with a signature of our own, and read the proof.

    pip install "./clients/python-rest[signing]"
    SILAS_KEY=sk_... python clients/examples/approve_a_change.py http://127.0.0.1:8420 DEPLOYMENT_ID

DEPLOYMENT_ID is the `id` of a chatbot in `GET /api/v1/deployments`.

The first run makes `signing.key` and prints its public half: enter it at the console under API keys, "Let this program
decide". The words are those of the demo company Meridian Insurance.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from silas_client import Client
from silas_client.signing import key_id, load_key, signed_decision

SAID = (
    "What is the status of my claim CL-3071?",
    "Maria Ortega, 12 March 1984",
    "Please change the address on my policy HM-20418 to 1 Mill Lane, Leeds LS1 4DY",
)


def main(url: str, deployment: str) -> None:
    key = load_key(Path(os.environ.get("SILAS_SIGNING_FILE", "signing.key")))
    print("public key", key.public_key().public_bytes_raw().hex())
    with Client(url, os.environ["SILAS_KEY"]) as client:
        known = [each for each in client.client_keys_list()["client_keys"] if each["key_id"] == key_id(key)]
        if not known:
            sys.exit("Enter this public key at the console first.")
        session = client.sessions_create({"deployment": deployment})["id"]
        seq = 0
        for text in SAID:
            seq = client.session_visitor_messages_create(session, {"text": text})["seq"]
            for said in until(lambda after=seq: answers(client, session, after=after)):
                print("bot:", said)
        line = until(lambda: client.cards_list(session=session, state="open")["cards"])[0]
        card = client.cards_get(line["id"])
        print("asked:", card["intent"], card["payload_hash"])
        body = signed_decision(card, "approve", key=key, user_id=known[0]["on_behalf_of"]["id"])
        print("outcome:", client.cards_decide(card["id"], body)["outcome"])
        work = until(lambda: client.work_items_list(session=session, status="done")["work_items"])
        print("done and verified:", work[0]["title"])
        entry = client.audit_list(event="card_decided", subject=f"card:{card['id']}")["entries"][0]
        proof = client.audit_get(entry["seq"])
        print("proof: entry", proof["seq"], proof["entry_hash"], "log broken:", client.audit_verify()["broken"])


def answers(client: Client, session: str, *, after: int) -> list[str]:
    found = client.session_messages_list(session, after_seq=after)["messages"]
    return [each["text"] for each in found if each["sender"] == "bot" and each["text"]]


def until(ask: Any, seconds: float = 120) -> Any:
    give_up = time.monotonic() + seconds
    while not (found := ask()) and time.monotonic() < give_up:
        time.sleep(0.5)
    return found or sys.exit("Nothing came in time.")


if __name__ == "__main__":
    main(*sys.argv[1:])
