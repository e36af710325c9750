"""Places for work are counted by tenant; nothing counts them over all."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("work", "0006_waits_and_looks_are_due_on_the_bus")]

    operations = [migrations.RunSQL("DROP FUNCTION IF EXISTS work_pool_taken();", migrations.RunSQL.noop)]
