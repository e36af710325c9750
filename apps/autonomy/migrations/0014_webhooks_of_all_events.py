from django.db import migrations

from kernel.tenancy.migrations import over_all_tenants

_TASKS = "scheduled started completed failed halted dead_letter budget_warning budget_exceeded result"
_ALL = ", ".join(f"'task.{name}'" for name in _TASKS.split())
# A webhook for all events was one for all events of tasks, and stays it. Results went to every webhook.
FORWARDS = f"""
    UPDATE autonomy_webhook SET events = CASE
        WHEN events = '[]'::jsonb THEN jsonb_build_array({_ALL})
        ELSE replace(events::text, '"task:', '"task.')::jsonb || '["task.result"]'::jsonb
    END
"""  # noqa: S608  (our own names)


class Migration(migrations.Migration):

    dependencies = [
        ('autonomy', '0013_standard_webhooks'),
    ]

    operations = [
        migrations.RunSQL(over_all_tenants(FORWARDS), migrations.RunSQL.noop),
    ]
