"""A real deployment: every key given, secure cookies, no demo."""

from django.core.exceptions import ImproperlyConfigured

from silas_platform.settings import env
from silas_platform.settings.base import *

STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"}}
DEMO = env.flag("SILAS_DEMO", default=False)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS = 31_536_000
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

for _name in ("SECRET_KEY", "REDIS_URL"):
    if not globals().get(_name):
        raise ImproperlyConfigured(f"E_CFG_MISSING: {_name} must be set")
if not env.text("DATABASE_URL"):
    raise ImproperlyConfigured("E_CFG_MISSING: DATABASE_URL must be set")
