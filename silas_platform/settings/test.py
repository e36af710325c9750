"""The tests: real PostgreSQL and Redis of their own, addresses given by tests/conftest.py."""

from kernel.trust import root_of
from silas_platform.settings import env
from silas_platform.settings.base import *

DEMO = True
SECRET_KEY = SECRET_KEY or "test-secret-key-that-is-long-enough"
SILAS_SIGNING_KEY = SILAS_SIGNING_KEY or "test-signing-key"
SILAS_SECRETS_KEY = SILAS_SECRETS_KEY or "test-secrets-key"
# What a worker of these tests pins; several tests take the signing key away to be one.
SILAS_ROOT_KEYS = SILAS_ROOT_KEYS or (root_of(SILAS_SIGNING_KEY),)
ALLOWED_HOSTS = ["*"]
BUNDLED_SKILLS_CHECKED = False
FAULT_POINTS = env.text("SILAS_FAULT_POINTS")
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Static files straight from the rooms: nothing is collected in tests.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
WEBHOOKS_PRIVATE = True
CHANNELS_PRIVATE = True
# A poll that a test carries out ends after one look.
CHANNEL_WATCHES = 0
LOGIN_PROVIDERS_PRIVATE = True
