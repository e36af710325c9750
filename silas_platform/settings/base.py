"""Settings of every environment; dev, test and prod say what differs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from kernel.language import DEFAULT_LANGUAGE
from kernel.language import LANGUAGES as LANGUAGE_NAMES
from kernel.redis_servers import MasterPool, channel_host
from silas_platform.settings import broker, env
from silas_platform.settings.databases import databases
from silas_platform.settings.storage import file_storage

BASE_DIR = Path(__file__).resolve().parents[2]
VAR_DIR = Path(env.text("SILAS_VAR") or BASE_DIR / "var").resolve()

DEBUG = False
DEMO = False
SECRET_KEY = env.text("SECRET_KEY")
SILAS_SIGNING_KEY = env.text("SILAS_SIGNING_KEY")
SILAS_SIGNING_KEY_OLD = env.text("SILAS_SIGNING_KEY_OLD")  # manage.py reseal_keys only
# Public halves of installation keys whose certificates are believed, outside the database (kernel.trust).
SILAS_ROOT_KEYS = env.public_keys("SILAS_ROOT_KEYS")
SILAS_SECRETS_KEY = env.text("SILAS_SECRETS_KEY")
# While the key above is being changed: what was sealed under this one still opens (docs/connections.md).
SILAS_SECRETS_KEY_OLD = env.text("SILAS_SECRETS_KEY_OLD")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS")
# With which Prometheus asks for /metrics; without it there is no such page.
METRICS_TOKEN = env.text("SILAS_METRICS_TOKEN")

INSTALLED_APPS = [
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
    "apps.safety",
    "apps.guard",
    "apps.gates",
    "apps.toolservers",
    "apps.knowledge",
    "apps.memory",
    "apps.persona",
    "apps.skills",
    "apps.releases",
    "apps.connections",
    "apps.work",
    "apps.access",
    "apps.sessions",
    "apps.visitors",
    "apps.contacts",
    "apps.inbox",
    "apps.copilot",
    "apps.imports",
    "apps.messengers",
    "apps.autonomy",
    "apps.suggestions",
    "apps.events",
    "apps.protocols",
    "apps.simulations",
    "apps.widgets",
    "apps.console",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "silas_platform.compression.CompressionMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "silas_platform.language.LanguageMiddleware",
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
        # What pages share, then each console page's own, which lie beside its views.
        "DIRS": [BASE_DIR / "templates", *sorted((BASE_DIR / "apps" / "console" / "pages").glob("*/templates"))],
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

DATABASES = databases(
    env.text("DATABASE_URL"),
    owner_url=env.text("DATABASE_OWNER_URL"),
    replica_url=env.text("DATABASE_REPLICA_URL"),
    prepared=env.number("DATABASE_PREPARED", 1) == 1,
)
DATABASE_THREADS = env.number("DATABASE_THREADS", 8)
DATABASE_SLOW_THREADS = env.number("DATABASE_SLOW_THREADS", 3)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Cache and limits; the broker (broker.py) and the channel layer may have servers of their own.
REDIS_URL = env.text("REDIS_URL")
CHANNELS_URL = env.text("SILAS_CHANNELS_URL") or REDIS_URL
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [channel_host(CHANNELS_URL)]},
    },
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": [REDIS_URL],  # a list, since a text would be split at the commas between sentinels
        "OPTIONS": {"socket_timeout": 2, "pool_class": MasterPool},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

CELERY_BROKER_URL = broker.url()
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Without it every task closes its process's pool of database lines and the next one opens them again: 10 ms.
CELERY_DB_REUSE_MAX = 1000
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = broker.options()
# What a worker serves that is told no queues: all that need no signing key. A task that names no queue is upkeep; the
# bus names the queue of each kind of worker (apps.bus.workers.Worker). The trusted worker is started with `-Q trusted`.
CELERY_TASK_QUEUES: dict[str, dict[str, object]] = {"work": {}, "parse": {}, "upkeep": {}}
CELERY_TASK_DEFAULT_QUEUE = "upkeep"

# A worker's child that is busy for so long with what names no time of its own hangs, and is ended (apps.bus.deadlines).
DELIVERY_SECONDS = env.number("SILAS_DELIVERY_SECONDS", 3600)

# How long a queue message is kept after it was done with or dropped.
BUS_KEEP_DAYS = env.number("SILAS_BUS_KEEP_DAYS", 7)

# How long events can be read again, and how many streams of events one company may hold open.
EVENTS_KEEP_DAYS = env.number("SILAS_EVENTS_KEEP_DAYS", 14)
EVENT_STREAMS = env.number("SILAS_EVENT_STREAMS", 100)
# How many runs of outside agents (AG-UI, A2A) one company may hold open.
AGENT_RUNS = env.number("SILAS_AGENT_RUNS", 100)

# How long a memory is kept: what was said, and what was made of it.
MEMORY_RAW_DAYS = env.number("SILAS_MEMORY_RAW_DAYS", 90)
MEMORY_DAYS = env.number("SILAS_MEMORY_DAYS", 365)

# How long what was done can be taken back with one tap (spec 0.5.5).
UNDO_SECONDS = env.number("SILAS_UNDO_SECONDS", 300)
# Reviewed batches: how many actions one card holds, and from which confidence on (spec 5.9); a deployment may differ.
BATCH_REVIEW = {"default_size": 10, "high_min": 0.85, "medium_min": 0.5}

# What isolates scripts and checks (sandbox): subprocess or docker.
SANDBOX_BACKEND = env.text("SILAS_SANDBOX", "subprocess")
SANDBOX_IMAGE = env.text("SILAS_SANDBOX_IMAGE", "python:3.12-slim")
# Which host:port inside of the house outside tools may reach, and a run whose skill lists them; the outside needs no
# entry here.
EGRESS_PRIVATE = env.words("SILAS_EGRESS_PRIVATE")
# Which host:port a check may reach that asks for the network; without one it is refused.
CHECK_PLACES = env.words("SILAS_CHECK_PLACES")

# Where `make guardrails` puts guardrails-ai, which gates of that provider run in (apps.gates.guardrails).
GUARDRAILS_DIR = env.text("SILAS_GUARDRAILS") or BASE_DIR / "var" / "guardrails"

# Where credentials of outside accounts are kept, sealed in any case: database, keyring, or the dotted path of a class
# with the methods of apps.connections.backends.CredentialStore.
CREDENTIAL_BACKEND = env.text("SILAS_CREDENTIAL_BACKEND", "database")

# A folder in which tests leave faults (kernel.fault_points); only their own settings read the variable.
FAULT_POINTS = ""

AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", "apps.tenants.permissions.OwnerBackend"]
LOGIN_URL = "/console/login/"
LOGIN_REDIRECT_URL = "/console/"
LOGOUT_REDIRECT_URL = "/console/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = DEFAULT_LANGUAGE
LANGUAGES = list(LANGUAGE_NAMES.items())
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["silas_platform.formats"]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "files": file_storage(VAR_DIR),
}

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
    "DEFAULT_SCHEMA_CLASS": "silas_platform.api_schema.Schema",
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
    # Names of choices whose field has a name that other fields have too.
    "ENUM_NAME_OVERRIDES": {
        "ApprovalStateEnum": "apps.approvals.enums.ApprovalState",
        "ArtifactKindEnum": "apps.autonomy.enums.ArtifactKind.values",
        "AssistanceKindEnum": "apps.copilot.enums.AssistanceKind.values",
        "AttemptStatusEnum": "apps.work.enums.AttemptStatus",
        "CardKindEnum": "apps.approvals.cards.kinds.kind_labels",
        "CardStateEnum": "apps.approvals.enums.CardStatus",
        "ReasonEnum": "apps.imports.enums.Reason.values",
        "DeclineReasonEnum": "apps.approvals.enums.DeclineReason",
        "ChannelKindEnum": "apps.messengers.enums.ChannelKind",
        "ChannelMessageStateEnum": "apps.messengers.enums.MessageState",
        "IntakeKindEnum": "apps.knowledge.enums.IntakeKind",
        "IntakeStateEnum": "apps.knowledge.enums.IntakeState",
        "KeyScopeEnum": "apps.tenants.enums.KeyScope",
        "NewOAuthAppRequestScopesEnum": "apps.tenants.api.oauth_apps.SCOPES",
        "RiskEnum": "apps.approvals.enums.Risk",
        "ScopeEnum": "apps.approvals.enums.ApprovalScope",
        "SafetyDecisionEnum": "apps.safety.enums.Decision",
        "SafetyTierEnum": "apps.safety.enums.Tier",
        "TierEnum": "apps.memory.enums.Tier.values",
        "SimulationStatusEnum": "apps.simulations.enums.RunStatus",
        "ConversationStateEnum": "apps.inbox.enums.DeskStatus.values",
        "ModeEnum": "apps.memory.portability.Mode.values",
        "AudienceEnum": "apps.visitors.enums.Audience",
        "QuestionKindEnum": "apps.visitors.enums.QuestionKind",
        "SlaTargetEnum": "apps.inbox.enums.SlaTarget",
        "ViewPageEnum": "apps.inbox.enums.ViewPage.values",
        "WorkItemStatusEnum": "apps.work.enums.WorkItemStatus",
        "WorkItemTypeEnum": "apps.work.enums.WorkItemType",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "silas_platform.logs.text_formatter"},
        "json": {"()": "silas_platform.logs.json_formatter"},
    },
    "filters": {"without_texts": {"()": "silas_platform.logs.WithoutTexts"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": env.text("SILAS_LOG", "text"),
            "filters": ["without_texts"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # One line for every sweep would bury the rest.
        **{name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.beat", "celery.worker.strategy")},
        # One line for every connection that a pool gives up.
        "psycopg.pool": {"level": "WARNING"},
        # It logs requests and tokens at DEBUG.
        "oauthlib": {"level": "WARNING"},
        # Whole addresses, with what a visitor searched for, and what a server wrote beside its status.
        "httpx2": {"level": "WARNING"},
        # What outside tool servers say, word for word (the SDK's session calls itself "client"); what went wrong with
        # one is a code of ours.
        **{name: {"level": "CRITICAL"} for name in ("mcp.client", "client")},
    },
}
if env.text("SILAS_LOG", "text") not in ("text", "json"):
    raise ImproperlyConfigured("E_CFG_LOG: SILAS_LOG must be text or json")

# The visitor's token lives this long; the widget asks for a new one with its resume token (contract interfaces).
VISITOR_TOKEN_SECONDS = 900
TURN_LEASE_SECONDS = 30
# Requests of one credential to the REST API.
API_REQUESTS_A_MINUTE = env.number("SILAS_API_REQUESTS_A_MINUTE", 1000)
TURN_SWEEP_SECONDS = 2
PRESENCE_SWEEP_SECONDS = 3
CONSOLE_SWEEP_SECONDS = 10
SIMULATION_SWEEP_SECONDS = 3
# How long a simulated conversation waits for work that its scripted reviewer approved.
SIMULATION_WORK_SECONDS = 60.0
VISITOR_BURST = env.number("VISITOR_BURST", 40)
VISITOR_MESSAGES_A_SECOND = 1.0
# What one socket may send at once, frames of every kind, and how many sockets one address may open at once: a tenth of
# it a second after that. A twentieth of them may end unanswered at once, and a thousandth a second after that. How many
# connections one address may hold. Each process counts apart (silas_platform/connection_limits.py).
SOCKET_FRAMES = env.number("SILAS_SOCKET_FRAMES", 100)
SOCKET_HANDSHAKES = env.number("SILAS_SOCKET_HANDSHAKES", 200)
ADDRESS_CONNECTIONS = env.number("SILAS_ADDRESS_CONNECTIONS", 500)
# What visitors may send (spec 11), counted over all processes; a tenant's own row may say otherwise (docs/access.md).
VISITOR_LIMITS = {
    "messages_a_minute": env.number("SILAS_MESSAGES_A_MINUTE", 60),
    "address_messages_a_minute": env.number("SILAS_ADDRESS_MESSAGES_A_MINUTE", 240),
    "tenant_messages_a_minute": env.number("SILAS_TENANT_MESSAGES_A_MINUTE", 6000),
    "sockets": env.number("SILAS_SOCKETS", 10),
    "model_runs_a_minute": env.number("SILAS_MODEL_RUNS_A_MINUTE", 30),
    "tenant_model_runs_a_minute": env.number("SILAS_TENANT_MODEL_RUNS_A_MINUTE", 3000),
    "pending_turns": env.number("SILAS_PENDING_TURNS", 20),
    "tenant_pending_turns": env.number("SILAS_TENANT_PENDING_TURNS", 500),
}
# What may come in over one channel: from one sender, and in all.
CHANNEL_LIMITS = {
    "sender_messages_a_minute": env.number("SILAS_CHANNEL_SENDER_MESSAGES_A_MINUTE", 30),
    "messages_a_minute": env.number("SILAS_CHANNEL_MESSAGES_A_MINUTE", 1200),
}
# How many mailboxes a trusted worker watches for new mails, and how often others are looked into, in seconds; whether
# mail servers and providers may have private addresses, and the file of certificate authorities that vouch for them in
# place of the system's.
CHANNEL_WATCHES = env.number("SILAS_WATCHED_MAILBOXES", 50)
CHANNEL_POLL_SECONDS = env.number("SILAS_CHANNEL_POLL_SECONDS", 5)
CHANNELS_PRIVATE = env.flag("SILAS_CHANNELS_PRIVATE", default=False)
CHANNELS_CA = env.text("SILAS_CHANNELS_CA")
# Where the interfaces of messengers are, by kind of channel, for those who host a server of the same interface.
CHANNEL_APIS = env.by_name(r"SILAS_([A-Z]+)_API")
# How often the web may be searched (spec 9.2): in one turn, in one run's minute, in one tenant's day.
SEARCH_LIMITS = {
    "a_turn": env.number("SILAS_SEARCHES_A_TURN", 5),
    "a_minute": env.number("SILAS_SEARCHES_A_MINUTE", 20),
    "tenant_a_day": env.number("SILAS_TENANT_SEARCHES_A_DAY", 1000),
}
# How many bytes of visitors' files one tenant may keep (under SILAS_VAR/files).
VISITOR_FILES_BYTES = env.number("SILAS_VISITOR_FILES_MEGABYTES", 2048) * 1024 * 1024
# How many proxies of ours stand before each web process (`silas_platform.client_address`).
TRUSTED_PROXIES = env.number("SILAS_TRUSTED_PROXIES", 0)
MAX_CHRONICLE = 5000
MAX_CONVERSATION_USD = Decimal(2)
# Of a model's window that a turn may fill. The specification's 180,000 would let a stranger make one answer cost what
# twenty cost now, and small models have no such window.
CONTEXT_TOKENS = 32_000
MODEL_FIRST_TOKEN_SECONDS = 20
MODEL_TOTAL_SECONDS = 90
# The executors' pool (contract silas 15), and how long a paused item waits for its planner, a planner for its research.
POOL_SIZE = env.number("SILAS_POOL_SIZE", 16)
POOL_SIZE_PER_SCOPE = env.number("SILAS_POOL_SIZE_PER_SCOPE", 8)
POOL_RETRY_SECONDS = 2
# How many sessions of one company may run unattended at once, also if it allows itself more.
AUTONOMY_SESSIONS = env.number("SILAS_AUTONOMY_SESSIONS", 8)
# May a webhook lead into the house's own network? For tests and for those who host both ends.
WEBHOOKS_PRIVATE = env.flag("SILAS_WEBHOOKS_PRIVATE", default=False)
# The same of websites that are read into the knowledge.
WEBSITES_PRIVATE = env.flag("SILAS_WEBSITES_PRIVATE", default=False)
# Below which folder each company may keep documents that are read as a source, in a folder named by its slug; or off.
SOURCE_FOLDERS = env.text("SILAS_SOURCE_FOLDERS")
# How long the call of an approved change of a document waits for it.
KNOWLEDGE_WAIT_SECONDS = 60
# Whether a bundled skill is believed only by apps/skills/bundled.json. Tests install folders of their own as bundled.
BUNDLED_SKILLS_CHECKED = True
# Where the newest checkpoints of the audit log are kept outside the database; only appended to.
CHECKPOINTS_FILE = env.text("SILAS_CHECKPOINTS") or str(VAR_DIR / "audit-checkpoints.jsonl")
# How repositories of skills may be addressed. Tests add `http`.
SKILL_GIT_SCHEMES = ("https",)
# The mail server for notices of tasks; without one the console is where they are.
EMAIL_HOST = env.text("SILAS_MAIL_HOST")
EMAIL_PORT = env.number("SILAS_MAIL_PORT", 587)
EMAIL_HOST_USER = env.text("SILAS_MAIL_USER")
EMAIL_HOST_PASSWORD = env.text("SILAS_MAIL_PASSWORD")
EMAIL_USE_TLS = env.flag("SILAS_MAIL_TLS", default=True)
EMAIL_TIMEOUT = 10
# May a company's login provider stand in the house's own network? For those who host both.
LOGIN_PROVIDERS_PRIVATE = env.flag("SILAS_LOGIN_PROVIDERS_PRIVATE", default=False)
DEFAULT_FROM_EMAIL = env.text("SILAS_MAIL_FROM") or "silas@localhost"
# One mode of the execution safety loop for all: enforcing, monitoring, logging or disabled; empty: as policies say.
SAFETY_MODE = env.text("MCPAQL_SAFETY_LOOP")
SAFETY_KEY = env.text("SILAS_SAFETY_KEY")  # manage.py safety_server only
# Also sends codes by email to the people who may decide; the console always shows them. (needs SILAS_MAIL_HOST)
SAFETY_MAIL_CODES = env.flag("SILAS_SAFETY_MAIL_CODES", default=False)
# After how long a silent execution is called off, and how often that is looked at.
SAFETY_IDLE_SECONDS = env.number("SILAS_SAFETY_IDLE_SECONDS", 3600)
if SAFETY_MODE not in ("", "enforcing", "monitoring", "logging", "disabled"):
    raise ImproperlyConfigured("E_CFG_SAFETY: MCPAQL_SAFETY_LOOP must be enforcing, monitoring, logging or disabled")
GUIDANCE_SECONDS = 90
REPLAN_SECONDS = 600
RESEARCH_SECONDS = 120
# How long a card waits before silence is a no (spec 8.1), unless a tenant's own timings say otherwise: for a plan that
# a person waits for, for a gate that a running turn waits for, and for everything else.
CARD_SECONDS = {
    "plan": env.number("SILAS_PLAN_CARD_SECONDS", 300),
    "gate": env.number("SILAS_GATE_CARD_SECONDS", 120),
    "calm": env.number("SILAS_CALM_CARD_SECONDS", 86_400),
}
PASSKEY_SECONDS = 120
PASSKEY_ORIGIN = env.text("SILAS_PASSKEY_ORIGIN")  # where people open the console, if a proxy hides it
PASSKEY_RP_NAME = "silas_platform"
APPROVAL_TOKEN_SECONDS = env.number("SILAS_APPROVAL_SECONDS", 1800)
