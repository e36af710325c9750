"""Where visitors' files are kept: a folder of this machine, or a bucket of any server that speaks S3."""

from __future__ import annotations

from pathlib import Path

from silas_platform.settings import env


def file_storage(var_dir: Path) -> dict[str, object]:
    """Django's settings for the storage `files`; `SILAS_FILES_BUCKET` chooses S3."""
    bucket = env.text("SILAS_FILES_BUCKET")
    if not bucket:
        options = {"location": var_dir / "files", "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
        return {"BACKEND": "apps.visitors.file_storage.DurableFileSystemStorage", "OPTIONS": options}
    given = {
        "bucket_name": bucket,
        "endpoint_url": env.text("SILAS_FILES_ENDPOINT"),
        "region_name": env.text("SILAS_FILES_REGION"),
        "access_key": env.text("SILAS_FILES_ACCESS_KEY"),
        "secret_key": env.text("SILAS_FILES_SECRET_KEY"),
    }
    options = {name: value for name, value in given.items() if value}
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": {**options, "default_acl": "private"}}
