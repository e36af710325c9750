"""Places for work are counted by tenant; nothing counts them over all."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("work", "0004_thresholds_by_exact_approval")]

    operations = [migrations.RunSQL("DROP FUNCTION IF EXISTS work_pool_taken();", migrations.RunSQL.noop)]
