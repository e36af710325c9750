"""Schedules the ends of waits and the looks at goals; sweeps found them before."""

from django.db import migrations

from apps.bus.sql.due import schedule_rows, unschedule_rows
from apps.bus.enums import Kind

WAITS = """
    SELECT tenant_id, work_item_id::text, min(ends) FROM (
        SELECT tenant_id, work_item_id, waiting_until AS ends FROM work_course WHERE waiting_until IS NOT NULL
        UNION ALL
        SELECT asked.tenant_id, planning.work_item_id, asked.deadline FROM work_researchrequest asked
        JOIN work_planning planning ON planning.id = asked.planning_id WHERE asked.state = 'asked'
    ) waits GROUP BY tenant_id, work_item_id
"""
GOALS = """
    SELECT tenant_id, id::text, due_at FROM work_workitem
    WHERE type = 'goal' AND due_at IS NOT NULL AND status IN ('healthy', 'failed')
"""
# A look that a sweep had queued and nobody carried out is made at the goal's next time.
END_QUEUED_LOOKS = """
    SELECT set_config('silas.platform', 'on', true);
    UPDATE bus_queuemessage SET state = 'acked', leased_until = NULL, finished_at = statement_timestamp()
    WHERE queue = 'executor' AND kind = 'system_event' AND payload->>'event' = 'cycle' AND state IN ('queued', 'leased');
    SELECT set_config('silas.platform', '', true);
"""


class Migration(migrations.Migration):
    dependencies = [("work", "0005_document_changes_on_the_bus"), ("bus", "0002_due_work")]

    operations = [
        migrations.RemoveIndex(model_name="course", name="course_by_wait"),
        migrations.RemoveIndex(model_name="workitem", name="work_goals_due"),
        migrations.RunSQL(schedule_rows(Kind.WAIT_END, WAITS), unschedule_rows(Kind.WAIT_END)),
        migrations.RunSQL(schedule_rows(Kind.GOAL_CYCLE, GOALS), unschedule_rows(Kind.GOAL_CYCLE)),
        migrations.RunSQL(END_QUEUED_LOOKS, migrations.RunSQL.noop),
    ]
