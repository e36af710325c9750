"""What is read of a mail: own words, threads, automatic answers, bounces and hostile shapes."""

from __future__ import annotations

import time
from email.message import EmailMessage
from typing import Any

import pytest

from apps.messengers.email.reading import read
from apps.messengers.email.schemas import Mail


def mail(text: str = "Hello", html: str = "", **headers: str) -> EmailMessage:
    message = EmailMessage()
    fields = {
        "From": "Ada Byron <Ada@Example.test>",
        "To": "support+abc123@shop.test",
        "Subject": "Re: My parcel",
        "Message-ID": "<one@example.test>",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    for name, value in fields.items():
        message[name] = value
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    return message


def found(message: EmailMessage | bytes) -> Mail:
    answer, _ = read(message if isinstance(message, bytes) else message.as_bytes())
    return Mail.model_validate(answer)


def test_plain_mail_is_read() -> None:
    read_mail = found(mail("Where is it?", References="<a@x> <b@x>", **{"In-Reply-To": "<b@x>"}))
    assert read_mail.sender == "ada@example.test"
    assert read_mail.name == "Ada Byron"
    assert read_mail.text == "Where is it?"
    assert read_mail.recipients == ["support+abc123@shop.test"]
    assert read_mail.references[:2] == ["b@x", "b@x"]
    assert not read_mail.automatic


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Yes.\n\nOn Mon, Nov 3, 2025 at 10:00 AM Shop <s@shop.test> wrote:\n\n> Sure?\n", "Yes."),
        ("Ja.\n\nAm Mo., 3. Nov. 2025 um 10:00 Uhr schrieb Shop <s@shop.test>:\n> Sicher?\n", "Ja."),
        ("Oui.\n\nLe lun. 3 nov. 2025 à 10:00, Shop <s@shop.test> a écrit :\n> Sûr ?\n", "Oui."),
        ("Sí.\n\nEl lun, 3 nov 2025 a las 10:00, Shop (<s@shop.test>) escribió:\n> ¿Seguro?\n", "Sí."),
        ("2\n\n-----Original Message-----\nFrom: Shop\nSent: Monday\nTo: Ada\nSubject: Re\n\nPick one", "2"),
        ("It broke.\n\n-- \nAda Byron\nACME Corp", "It broke."),
        ("- first\n- second", "- first\n- second"),
        ("> all of it\n> is quoted", "> all of it\n> is quoted"),
        ("👍", "👍"),
    ],
)
def test_quotes_and_signatures_are_left_out(text: str, words: str) -> None:
    assert found(mail(text)).text == words


def test_html_is_read_as_its_visible_words() -> None:
    html = (
        "<html><style>p{}</style><script>alert(1)</script><p>My <b>parcel</b></p><p>is late</p>"
        "<blockquote>Old words</blockquote><img src='https://evil.test/pixel.gif'></html>"
    )
    message = mail("")
    message.add_alternative(html, subtype="html")
    assert found(message).text == "My parcel\n\nis late"


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto-Submitted": "auto-replied"},
        {"Auto-Submitted": "auto-generated; owner=x"},
        {"Precedence": "bulk"},
        {"X-Autoreply": "yes"},
        {"List-Id": "<news.example.test>"},
        {"Return-Path": "<>"},
    ],
)
def test_automatic_mails_are_known(headers: dict[str, str]) -> None:
    assert found(mail("I am away.", **headers)).automatic
    assert not found(mail("I am here.", **{"Auto-Submitted": "no"})).automatic


def test_bounce_names_the_mail_that_failed() -> None:
    bounce = (
        b"From: MAILER-DAEMON@mx.test\r\nTo: support@shop.test\r\nMessage-ID: <b@mx.test>\r\n"
        b'Content-Type: multipart/report; report-type=delivery-status; boundary="x"\r\n\r\n'
        b"--x\r\nContent-Type: text/plain\r\n\r\nNot delivered.\r\n"
        b"--x\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.test\r\n\r\n"
        b"Final-Recipient: rfc822; ada@example.test\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n"
        b"--x\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <ours@shop.test>\r\n\r\n--x--\r\n"
    )
    assert found(bounce).failed == ["ours@shop.test"]
    assert found(bounce).automatic
    assert found(bounce.replace(b"Action: failed", b"Action: delayed")).failed == []


def test_results_of_the_first_server_come_first() -> None:
    message = mail("Hello")
    message["Authentication-Results"] = "mx.shop.test; spf=pass smtp.mailfrom=x; dkim=fail; dmarc=fail (p=reject)"
    message["Authentication-Results"] = "evil.test; dmarc=pass"
    results = found(message).results
    assert results[0].server == "mx.shop.test"
    assert results[0].dmarc == "fail"
    assert results[0].spf == "pass"


def test_files_come_with_their_bytes_and_logos_do_not() -> None:
    message = mail("See attachments")
    message.add_attachment(b"%PDF-1", maintype="application", subtype="pdf", filename="../../bill\u202e.pdf")
    message.add_attachment(
        b"\x89PNG", maintype="image", subtype="png", filename="logo.png", cid="<l>", disposition="inline"
    )
    answer, blob = read(message.as_bytes())
    assert [file["size"] for file in answer["files"]] == [6]
    assert blob == b"%PDF-1"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 1000,
        b"From: \r\n\r\n",
        b"From: a@b.test, c@d.test\r\n\r\nTwo senders",
        b"From: =?utf-8?b?" + b"A" * 10_000 + b"?= <a@b.test>\r\n\r\nx",
        b"From: a@b.test\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n" + b"--x\r\n\r\n" * 5000,
        b"From: a@b.test\r\nContent-Type: text/plain; charset=nonsense\r\n\r\nHello",
        b"From: a@b.test\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!!",
        b"From: a@b.test\r\nSubject: x\r\nReferences: " + b"<a@b> " * 5000 + b"\r\n\r\nHello",
        b"From: a@b.test\r\n\r\n" + b"> " * 50_000,
        b"From: a@b.test\r\nContent-Type: text/html\r\n\r\n" + b"<div>" * 20_000,
    ],
)
def test_hostile_mail_is_read_as_something_valid(data: bytes) -> None:
    Mail.model_validate(read(data)[0])


def test_two_senders_are_none() -> None:
    assert found(b"From: a@b.test, c@d.test\r\n\r\nTwo senders").sender == ""


def test_long_mail_takes_no_longer_than_its_length(record_property: Any) -> None:
    """No pattern of the library takes quadratic time on what is passed to it, which is cut before."""
    started = time.process_time()
    found(mail("On " + "a " * 9_000 + "\n" + "wrote:\n" * 500))
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("mx; spf=pass smtp.mailfrom=dmarc=pass@evil.test; dmarc=fail (p=reject)", "fail"),
        ('mx; spf=pass smtp.mailfrom="; dmarc=pass; x"@evil.test; dmarc=fail', "fail"),
        ("mx; spf=pass (; dmarc=pass ); dmarc=fail", "fail"),
        ("mx; dmarc=pass; dmarc=fail", "unclear"),
        ("mx; dmarc = pass header.from=shop.test", "pass"),
        ("mx; dmarc=pass@evil.test", ""),
    ],
)
def test_sender_cannot_write_the_verdict_of_our_server(value: str, verdict: str) -> None:
    message = mail("Hello")
    message["Authentication-Results"] = value
    assert found(message).results[0].dmarc == verdict


def test_mail_without_an_id_has_the_same_one_each_time() -> None:
    data = b"From: a@b.test\r\n\r\nHello"
    assert found(data).message_id == found(data).message_id != ""
