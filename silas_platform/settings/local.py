"""One machine, as `make run` makes it: runs as production does, but over plain HTTP and with keys of its own making."""

from silas_platform.settings import env
from silas_platform.settings.base import *
from silas_platform.up.environment import is_loopback

# The demo's logins are printed, so that it is only there where no one else has access.
DEMO = env.flag("SILAS_DEMO", default=is_loopback(env.text("HOST") or "127.0.0.1"))
SECRET_KEY = SECRET_KEY or "only-until-make-run-makes-one"
ALLOWED_HOSTS = ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
# Straight from the rooms: nothing has to be collected before the first start.
WHITENOISE_USE_FINDERS = True
# Without a mail server letters are read in the terminal.
if not EMAIL_HOST:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
