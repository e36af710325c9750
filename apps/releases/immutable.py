"""SQL that keeps what a release says as it was published; used by the migration."""

REFUSE = """
CREATE FUNCTION releases_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a release never changes' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER releases_release_no_rewrite BEFORE UPDATE ON releases_release FOR EACH ROW
    WHEN ((OLD.tenant_id, OLD.deployment_id, OLD.number, OLD.snapshot, OLD.sha256, OLD.restores, OLD.created_by,
           OLD.published_at, OLD.simulation, OLD.override_reason)
          IS DISTINCT FROM
          (NEW.tenant_id, NEW.deployment_id, NEW.number, NEW.snapshot, NEW.sha256, NEW.restores, NEW.created_by,
           NEW.published_at, NEW.simulation, NEW.override_reason))
    EXECUTE FUNCTION releases_refuse();
CREATE TRIGGER releases_release_no_delete BEFORE DELETE ON releases_release
    FOR EACH ROW EXECUTE FUNCTION releases_refuse();
CREATE TRIGGER releases_release_no_truncate BEFORE TRUNCATE ON releases_release
    FOR EACH STATEMENT EXECUTE FUNCTION releases_refuse();
"""

REFUSE_REVERSE = """
DROP TRIGGER releases_release_no_rewrite ON releases_release;
DROP TRIGGER releases_release_no_delete ON releases_release;
DROP TRIGGER releases_release_no_truncate ON releases_release;
DROP FUNCTION releases_refuse();
"""
