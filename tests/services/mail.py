"""A mail server on this machine (aiosmtpd) that wants STARTTLS and a password, and keeps what it took."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USERNAME, PASSWORD = "desk@harbor.example", "mailbox-password"


@dataclass
class MailServer:
    place: str = ""
    ca: str = ""
    taken: list[Message] = field(default_factory=list)
    refuse: bool = False

    @property
    def settings(self) -> dict[str, str]:
        return {"server": self.place, "username": USERNAME, "from_address": USERNAME, "ca": self.ca}

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if self.refuse:
            return "554 not this one"
        self.taken.append(message_from_bytes(envelope.content))
        return "250 taken"


@contextmanager
def serving() -> Iterator[MailServer]:
    mail = MailServer()
    with tempfile.TemporaryDirectory() as folder:
        context, mail.ca = _identity(Path(folder))
        ready, ending = threading.Event(), asyncio.Event()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=lambda: loop.run_until_complete(_serve(mail, context, ready, ending)))
        thread.start()
        ready.wait()
        yield mail
        loop.call_soon_threadsafe(ending.set)
        thread.join()
        loop.close()


async def _serve(mail: MailServer, context: ssl.SSLContext, ready: threading.Event, ending: asyncio.Event) -> None:
    known: dict[str, Any] = {"authenticator": _known, "auth_required": True, "require_starttls": True}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mail, tls_context=context, loop=loop, **known), "127.0.0.1", 0)
    mail.place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    ready.set()
    await ending.wait()
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _known(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    right = (data.login, data.password) == (USERNAME.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


def _identity(folder: Path) -> tuple[ssl.SSLContext, str]:
    """A certificate for this machine that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "both.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, none) + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context, pem.decode()
