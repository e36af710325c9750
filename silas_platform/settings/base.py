"""How is it put together? What holds in every environment; dev, test and prod say what differs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from silas_platform.settings import env
from silas_platform.settings.databases import databases

BASE_DIR = Path(__file__).resolve().parents[2]
VAR_DIR = Path(env.text("SILAS_VAR") or BASE_DIR / "var").resolve()

DEBUG = False
DEMO = False
SECRET_KEY = env.secret("SECRET_KEY")
SILAS_SIGNING_KEY = env.secret("SILAS_SIGNING_KEY")
SILAS_SECRETS_KEY = env.secret("SILAS_SECRETS_KEY")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS")

INSTALLED_APPS = [
    "daphne",
    "silas_platform.apps.SilasAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "silas_platform.apps.PlatformConfig",
    "apps.tenants",
    "apps.audit",
    "apps.approvals",
    "apps.bus",
    "apps.guard",
    "apps.gates",
    "apps.memory",
    "apps.skills",
    "apps.work",
    "apps.sessions",
    "apps.widgets",
    "apps.console",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "silas_platform.errors.SilasErrorMiddleware",
]

ROOT_URLCONF = "silas_platform.urls"
ASGI_APPLICATION = "silas_platform.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "silas_platform" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = databases(env.secret("DATABASE_URL"), owner_url=env.secret("DATABASE_OWNER_URL"))
DATABASE_THREADS = env.number("DATABASE_THREADS", 8)
DATABASE_SLOW_THREADS = env.number("DATABASE_SLOW_THREADS", 3)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.secret("REDIS_URL")
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}},
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_timeout": 2},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A broker that vanishes without closing its lines is noticed, by beat too.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 10}
CELERY_BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    "bus.sweep": {"task": "bus.sweep", "schedule": 5.0},
    "guard.settle_lost_calls": {"task": "guard.settle_lost_calls", "schedule": 60.0},
    "approvals.expire_cards": {"task": "approvals.expire_cards", "schedule": 15.0},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")

AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", "apps.tenants.permissions.OwnerBackend"]
LOGIN_URL = "/console/login/"
LOGIN_REDIRECT_URL = "/console/"
LOGOUT_REDIRECT_URL = "/console/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"

SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "silas_platform.errors.api_exception",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["silas_platform.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "silas_platform",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "silas_platform.logs.text_formatter"},
        "json": {"()": "silas_platform.logs.json_formatter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": env.text("SILAS_LOG", "text")}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    # One line for every sweep would bury the rest.
    "loggers": {name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.beat", "celery.worker.strategy")},
}
if env.text("SILAS_LOG", "text") not in ("text", "json"):
    raise ImproperlyConfigured("E_CFG_LOG: SILAS_LOG must be text or json")

# The visitor's token lives this long; the widget asks for a new one with its resume token (contract interfaces).
VISITOR_TOKEN_SECONDS = 900
TURN_LEASE_SECONDS = 30
TURN_SWEEP_SECONDS = 2
PRESENCE_SWEEP_SECONDS = 3
CONSOLE_SWEEP_SECONDS = 10
CHECKPOINT_SECONDS = 60
MAX_PENDING_TURNS = 20
MAX_CHRONICLE = 5000
MAX_CONVERSATION_USD = Decimal(2)
MODEL_FIRST_TOKEN_SECONDS = 20
MODEL_TOTAL_SECONDS = 90
CARD_TIMEOUT_SECONDS = env.number("SILAS_CARD_TIMEOUT", 1800)
APPROVAL_TOKEN_SECONDS = env.number("SILAS_APPROVAL_SECONDS", 1800)
