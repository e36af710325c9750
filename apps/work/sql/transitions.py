"""SQL of the trigger that holds status changes of work items to the allowed transitions; used by the migrations
only."""

# Mirrors `apps.work.rules.TRANSITIONS` for writers that bypass the services. An item begins as pending.
MOVES = """
CREATE FUNCTION work_status_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_onward text[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'pending' THEN
            RAISE EXCEPTION 'work begins as pending' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.type <> OLD.type THEN
        RAISE EXCEPTION 'work stays of its type' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status = OLD.status THEN
        RETURN NEW;
    END IF;
    v_onward := CASE
        WHEN OLD.type = 'goal' THEN CASE OLD.status
            WHEN 'pending' THEN ARRAY['healthy', 'failed', 'paused', 'blocked']
            WHEN 'healthy' THEN ARRAY['failed', 'paused', 'blocked']
            WHEN 'failed' THEN ARRAY['healthy', 'paused', 'blocked']
            WHEN 'paused' THEN ARRAY['healthy', 'failed', 'blocked']
            ELSE ARRAY[]::text[] END
        ELSE CASE OLD.status
            WHEN 'pending' THEN ARRAY['running', 'blocked', 'paused', 'failed']
            WHEN 'running' THEN ARRAY['done', 'failed', 'stuck', 'blocked', 'paused']
            WHEN 'paused' THEN ARRAY['pending', 'running', 'failed', 'stuck', 'blocked']
            ELSE ARRAY[]::text[] END
        END;
    IF NOT NEW.status = ANY(v_onward) THEN
        RAISE EXCEPTION 'work cannot go from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER work_workitem_moves BEFORE INSERT OR UPDATE OF status, type ON work_workitem
    FOR EACH ROW EXECUTE FUNCTION work_status_moves();
"""
MOVES_REVERSE = """
DROP TRIGGER work_workitem_moves ON work_workitem;
DROP FUNCTION work_status_moves();
"""
