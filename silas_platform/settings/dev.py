"""A developer's machine: made by `make run`, demo pages on, loopback only."""

from silas_platform.settings import env
from silas_platform.settings.base import *

DEBUG = env.flag("DEBUG", default=True)
DEMO = env.flag("SILAS_DEMO", default=DEBUG)
SECRET_KEY = SECRET_KEY or "development-only-until-make-run-makes-one"
ALLOWED_HOSTS = ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
# Without a mail server a developer reads letters in the terminal.
if not EMAIL_HOST:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
