from django.db import migrations

from apps.work.sql import thresholds


class Migration(migrations.Migration):
    """A change of thresholds that widens names an approval for exactly that."""

    dependencies = [("work", "0003_ledger_left")]

    operations = [migrations.RunSQL(thresholds.EXACT, thresholds.EXACT_REVERSE)]
