from django.db import migrations

from apps.work import earned_sql


class Migration(migrations.Migration):
    """A change of thresholds that widens names an approval for exactly that."""

    dependencies = [("work", "0003_ledger_left")]

    operations = [migrations.RunSQL(earned_sql.EXACT, earned_sql.EXACT_REVERSE)]
