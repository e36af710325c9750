"""Visitors' files in a bucket: a real server that speaks S3 stands in for Amazon's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import boto3
import pytest
import time_machine
from django.conf import settings
from django.core.files.storage import storages
from django.utils import timezone
from moto.server import ThreadedMotoServer

from apps.sessions.models import ChatSession
from apps.visitors import file_storage, files
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope
from silas_platform.settings.storage import file_storage as storage_settings
from tests.factories.visitors import PNG, Browser


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of its own, in which the platform keeps its files during the test."""
    name = uuid4().hex
    credentials = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "eu-central-1"}
    client = boto3.client("s3", endpoint_url=server, **credentials)
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    given = {"BUCKET": name, "ENDPOINT": server, "REGION": "eu-central-1", "ACCESS_KEY": "key", "SECRET_KEY": "secret"}
    for variable, value in given.items():
        monkeypatch.setenv(f"SILAS_FILES_{variable}", value)
    monkeypatch.setattr(storages, "backends", {**storages.backends, "files": storage_settings(settings.VAR_DIR)})
    monkeypatch.setattr(storages, "_storages", {})
    return name


def names(session: ChatSession) -> list[str]:
    return sorted(file_storage._names_below(session.tenant_id.hex))


def test_file_is_kept_in_the_bucket_and_served_from_it(bucket: str, visitor: Browser, session: ChatSession) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    assert len(names(session)) == 1
    response = visitor.get(f"files/{file_id}")
    assert b"".join(response.streaming_content) == PNG  # type: ignore[arg-type]  # a synchronous response


def test_refused_file_leaves_nothing_in_the_bucket(bucket: str, visitor: Browser, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(seq=10**9)
    assert visitor.send("a.png", PNG).status_code == 409
    assert names(session) == []


def test_bytes_without_a_row_are_swept_after_an_hour(bucket: str, visitor: Browser, session: ChatSession) -> None:
    visitor.send("a.png", PNG)
    (kept,) = names(session)
    path, _, _ = file_storage.receive([b"orphan"], most=10)
    file_storage.put(path, session.tenant_id)
    path.unlink()
    file_storage.sweep()
    assert len(names(session)) == 2
    with time_machine.travel(timezone.now() + timedelta(seconds=file_storage.ORPHAN_SECONDS + 60), tick=True):
        file_storage.sweep()
    assert names(session) == [kept]


def test_file_that_is_gone_from_the_bucket_is_not_found(bucket: str, visitor: Browser, session: ChatSession) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    file_storage.storage().delete(names(session)[0])
    with tenant_scope(session.tenant_id), pytest.raises(NotFound):
        files.file_of(session.pk, file_id)
