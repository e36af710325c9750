#!/bin/sh
# Runs once, inside the PostgreSQL container, when its volume is empty: the application's two roles and their passwords.
set -eu
psql --set ON_ERROR_STOP=1 --username postgres --dbname "$POSTGRES_DB" \
    --set app="$(cat /run/secrets/database_app_password)" \
    --set owner="$(cat /run/secrets/database_owner_password)" <<'SQL'
\i /roles.sql
ALTER ROLE silas_app PASSWORD :'app';
ALTER ROLE silas_owner PASSWORD :'owner';
SQL
