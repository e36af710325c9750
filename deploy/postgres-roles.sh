#!/bin/sh
# Makes the application's roles and sets their passwords, as the database's superuser; safe to repeat. compose.yaml runs
# it at every start, beside the PostgreSQL that PGHOST names.
set -eu
secrets=${SECRETS:-/run/secrets}
PGPASSWORD=$(cat "$secrets/postgres_password")
export PGPASSWORD
psql --set ON_ERROR_STOP=1 --quiet --single-transaction --username postgres \
    --set app="$(cat "$secrets/database_app_password")" \
    --set owner="$(cat "$secrets/database_owner_password")" \
    --set work="$(cat "$secrets/database_work_password")" <<SQL
\i ${ROLES_SQL:-/roles.sql}
ALTER ROLE silas_app PASSWORD :'app';
ALTER ROLE silas_owner PASSWORD :'owner';
ALTER ROLE silas_work PASSWORD :'work';
SQL
