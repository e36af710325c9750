"""The tests: real PostgreSQL and Redis of their own, addresses given by tests/conftest.py."""

from silas_platform.settings.base import *  # noqa: F403

DEMO = True
SECRET_KEY = "test-secret-key-that-is-long-enough"
SILAS_SIGNING_KEY = SILAS_SIGNING_KEY or "test-signing-key"  # noqa: F405
SILAS_SECRETS_KEY = SILAS_SECRETS_KEY or "test-secrets-key"  # noqa: F405
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Static files straight from the rooms: nothing is collected in tests.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
