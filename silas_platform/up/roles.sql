-- The three roles of the application database and what each may do.
-- silas_owner owns the tables and migrates; silas_app serves requests, owns nothing and can bypass nothing, so that
-- row-level security binds it. silas_work is the same for workers, and every table is closed to it that
-- silas_platform/worker_rights.py does not open. Runs as the superuser inside the application database; safe to repeat.

CREATE EXTENSION IF NOT EXISTS vector;

-- Behind row-level security an index is used only for operators that are declared to leak nothing. Where the superuser
-- may not say so (managed servers), the search does without its word index.
DO $$
BEGIN
    ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'full-text matching stays undeclared: large collections are searched by meaning first';
END
$$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'silas_owner') THEN
        CREATE ROLE silas_owner LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE CREATEDB;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'silas_app') THEN
        CREATE ROLE silas_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'silas_work') THEN
        CREATE ROLE silas_work LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB;
    END IF;
    EXECUTE format('ALTER DATABASE %I OWNER TO silas_owner', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO silas_app, silas_work', current_database());
    -- Kept plans must stay right when tables grow (silas_platform/settings/databases.py).
    ALTER ROLE silas_app SET enable_seqscan = off;
    ALTER ROLE silas_work SET enable_seqscan = off;
    -- Only the owner makes objects here: others could be taken for ours by name (ADR 97).
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC, silas_app, silas_work', current_database());
END
$$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC, silas_app, silas_work;
GRANT USAGE, CREATE ON SCHEMA public TO silas_owner;
GRANT USAGE ON SCHEMA public TO silas_app, silas_work;
ALTER DEFAULT PRIVILEGES FOR ROLE silas_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO silas_app;
ALTER DEFAULT PRIVILEGES FOR ROLE silas_owner IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO silas_app;
