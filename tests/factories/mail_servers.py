"""A mail server and a mailbox server of Debian's on loopback: OpenSMTPD takes mails, Dovecot hands them out over TLS.

OpenSMTPD runs without TLS: the one of Debian 12 loses its private key in the handshake. Mails to `shop.test`, whatever
stands before the at sign, are support's; those to `example.test` Ada's.
"""

from __future__ import annotations

import fcntl
import imaplib
import os
import shutil
import smtplib
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.programs import SERVERS, do_without

SUPPORT, ADA, PASSWORD = "support@shop.test", "ada@example.test", "correct horse"
_ONE_AT_A_TIME = Path(tempfile.gettempdir()) / "silas-mail-servers.lock"
_DOVECOT = """
base_dir = {home}/run
log_path = {home}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{home}/cert.pem
ssl_key = <{home}/key.pem
service imap-login {{
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {imap}
    ssl = yes
  }}
}}
mail_location = maildir:{home}/mail/%n
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {home}/users
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={home}/mail/%n
}}
first_valid_uid = 1
first_valid_gid = 1
"""
_SMTPD = """
table virtuals {{ "@" = "mail" }}
listen on 127.0.0.1 port {smtp}
action "shop" maildir "{home}/mail/support" virtual <virtuals>
action "ada" maildir "{home}/mail/ada" virtual <virtuals>
match from any for domain "shop.test" action "shop"
match from any for domain "example.test" action "ada"
"""


@dataclass(frozen=True)
class MailServers:
    smtp: int
    imap: int
    authority: str
    dovecot: int = 0

    @property
    def settings(self) -> dict[str, str]:
        """Of a channel whose mailbox is support's."""
        return {
            "address": SUPPORT,
            "imap_host": "localhost",
            "imap_port": str(self.imap),
            "imap_user": SUPPORT,
            "imap_password": PASSWORD,
            "smtp_host": "localhost",
            "smtp_port": str(self.smtp),
            "smtp_security": "none",
        }

    def write(self, mail: EmailMessage) -> None:
        with smtplib.SMTP("localhost", self.smtp, timeout=10) as server:
            server.send_message(mail)

    def drop_connections(self) -> None:
        """End whoever is logged in to a mailbox, as a server does that is restarted."""
        for process in psutil.Process(self.dovecot).children(recursive=True):
            if process.name() == "imap":
                process.kill()

    def mailbox(self, user: str) -> list[EmailMessage]:
        box = imaplib.IMAP4_SSL(
            "localhost", self.imap, ssl_context=ssl.create_default_context(cafile=self.authority), timeout=10
        )
        try:
            box.login(user, PASSWORD)
            box.select("INBOX", readonly=True)
            _, found = box.search(None, "ALL")
            mails = [box.fetch(number, "(BODY.PEEK[])")[1][0] for number in found[0].split()]
            return [message_from_bytes(mail[1], policy=policy.default) for mail in mails]  # type: ignore[arg-type, index]  # as asked for
        finally:
            box.logout()

    def wait_for(self, user: str, count: int, seconds: float = 20) -> list[EmailMessage]:
        """The mailbox once it holds so many mails."""
        until = time.monotonic() + seconds
        while len(mails := self.mailbox(user)) < count and time.monotonic() < until:
            time.sleep(0.1)
        assert len(mails) == count
        return mails


@contextmanager
def mail_servers(home: Path) -> Iterator[MailServers]:
    """Skips the test on a machine where the servers are missing or do not start; with SILAS_REQUIRE_SERVERS=1 that is a
    failure."""
    missing = [name for name in ("dovecot", "smtpd") if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    if missing or os.geteuid() != 0:
        do_without(f"needs Debian's dovecot-imapd and opensmtpd, and root; missing: {missing}", SERVERS)
    with open(_ONE_AT_A_TIME, "w") as held:
        # Of two runs on one machine the second waits: OpenSMTPD has one spool and one control socket.
        fcntl.flock(held, fcntl.LOCK_EX)
        yield from _running(home)


def _running(home: Path) -> Iterator[MailServers]:
    ports = MailServers(_free_port(), _free_port(), str(home / "cert.pem"))
    home.chmod(0o755)
    for folder in (home, *home.parents):
        if folder != Path("/") and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    (home / "run").mkdir()
    (home / "mail").mkdir()
    shutil.chown(home / "mail", "mail", "mail")
    _certify(home)
    (home / "users").write_text("".join(f"{user}:{{PLAIN}}{PASSWORD}\n" for user in (SUPPORT, ADA)))
    names = {"home": home, "imap": ports.imap, "smtp": ports.smtp}
    (home / "dovecot.conf").write_text(_DOVECOT.format(**names))
    (home / "smtpd.conf").write_text(_SMTPD.format(**names))
    commands = (
        ["/usr/sbin/dovecot", "-F", "-c", str(home / "dovecot.conf")],
        ["/usr/sbin/smtpd", "-d", "-f", str(home / "smtpd.conf")],
    )
    with open(home / "servers.log", "w") as log:
        running = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
        try:
            for port in (ports.imap, ports.smtp):
                _wait_for_port(port, home)
            yield replace(ports, dovecot=running[0].pid)
        finally:
            for process in running:
                process.terminate()
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)


def _certify(home: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    moment = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - timedelta(minutes=5))
        .not_valid_after(moment + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (home / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    (home / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    (home / "key.pem").chmod(0o600)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_port(port: int, home: Path) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    do_without((home / "servers.log").read_text()[-2000:], SERVERS)


@contextmanager
def imap_server(*, idle: str, reports: bool = False) -> Iterator[int]:
    """The port of a server with one mail, of UID 7, for what Dovecot does not do. `idle`: "taken", "refused" or "no
    capability"; `reports`: whether it says during a fetch that another mail has come."""
    answers = {
        "CAPABILITY": "* CAPABILITY IMAP4rev1" + ("" if idle == "no capability" else " IDLE"),
        "EXAMINE": "* 1 EXISTS",
        "STATUS": "* STATUS INBOX (UIDVALIDITY 1 UIDNEXT 7)",
        "UID SEARCH": "* SEARCH 7",
        "UID FETCH": "* 1 FETCH (UID 7 RFC822.SIZE 99999999)" + ("\r\n* 2 EXISTS" if reports else ""),
    }

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("* OK ready")
            while line := self.rfile.readline().decode().strip():
                tag, _, command = line.partition(" ")
                if command == "IDLE" and idle == "taken":
                    self._say("+ idling")
                    self.rfile.readline()
                elif answer := next((said for name, said in answers.items() if command.startswith(name)), ""):
                    self._say(answer)
                self._say(f"{tag} BAD unknown" if command == "IDLE" and idle != "taken" else f"{tag} OK done")

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()
