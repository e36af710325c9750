"""Send one mail, and leave what the server said to it."""

import hashlib
import json
import smtplib
import sys
from email.message import EmailMessage
from pathlib import Path

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from mailing import signed_in

from silas_skill.account import Failure, answer, secrets, settings


def message(call):
    mail, args = EmailMessage(), call["args"]
    mail["From"], mail["To"], mail["Subject"] = settings()["from_address"], args["to"], args["subject"]
    # Of the call, not of the try: a server that gets it twice can tell.
    unique = hashlib.sha256(str(call.get("effect_key") or call["now"]).encode()).hexdigest()[:32]
    mail["Message-ID"] = f"<{unique}@{settings()['from_address'].rpartition('@')[2]}>"
    mail.set_content(args["text"])
    return mail


def send(call):
    mail = message(call)
    # A line that breaks while it is sent fails the run: then nobody knows whether it was taken.
    with signed_in(secrets().get("password", "")) as line:
        try:
            line.send_message(mail)
        except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
            raise Failure(
                "service_unavailable", f"The mail server refused the mail: {type(error).__name__}."
            ) from error
    return mail


def main():
    call = json.loads(Path("/sandbox/work/call.json").read_text())
    try:
        mail = send(call)
    except Failure as failure:
        answer(refused=failure.fields["message"])
    taken = {"to": mail["To"], "subject": mail["Subject"], "message_id": mail["Message-ID"]}
    Path("/sandbox/out/taken.json").write_text(json.dumps(taken))
    answer(sent=True, to=mail["To"])


main()
