# One image for every service of compose.yaml; what it runs as, and which secrets it gets, is said there.
FROM python:3.11.11-slim-bookworm AS dependencies
COPY requirements /tmp/requirements
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --require-hashes --only-binary=:all: -r /tmp/requirements/prod.txt
# What gates of the provider guardrails_ai run in, beside the platform's packages and never among them (tools/guardrails).
RUN /opt/venv/bin/pip install --no-cache-dir --require-hashes --only-binary=:all: --no-deps --no-compile \
    --target /opt/guardrails -r /tmp/requirements/guardrails.txt

FROM python:3.11.11-slim-bookworm
# bubblewrap makes the sandboxes in which skills' scripts and gates run.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/silas silas \
    && install --directory --owner=silas --mode=0700 /var/lib/silas/files /var/lib/silas/trust
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=dependencies /opt/guardrails /opt/guardrails
WORKDIR /srv/silas
COPY manage.py ./
COPY tools/healthcheck tools/verify_audit.py tools/
COPY skills skills
COPY silas_skill silas_skill
COPY kernel kernel
COPY llm llm
COPY sandbox sandbox
COPY locale locale
COPY templates templates
COPY static static
COPY apps apps
COPY silas_platform silas_platform
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=silas_platform.settings.prod \
    SILAS_VAR=/var/lib/silas \
    SILAS_GUARDRAILS=/opt/guardrails \
    SILAS_LOG=json \
    SILAS_TRUSTED_PROXIES=1 \
    PORT=8420
# Started once, with nothing to answer: that shows that it works, and compiles what it reads.
RUN python -I -S apps/gates/validator.py /opt/guardrails </dev/null >/dev/null
USER silas
# The addresses are never used: collecting files reads settings, not services.
RUN SECRET_KEY=only-for-this-step DATABASE_URL=postgresql://nowhere/none REDIS_URL=redis://nowhere \
    python manage.py collectstatic --noinput --verbosity 0
EXPOSE 8420
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s CMD ["python", "tools/healthcheck"]
CMD ["sh", "-c", "python manage.py check --deploy --database default && python manage.py root_key --pin /var/lib/silas/trust/root_keys && exec python -m daphne --bind 0.0.0.0 --port $PORT silas_platform.asgi:application"]
