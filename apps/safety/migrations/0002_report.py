from django.db import migrations

from apps.safety import report_sql


class Migration(migrations.Migration):

    dependencies = [
        ('safety', '0001_initial'),
    ]

    operations = [
        migrations.RunSQL(report_sql.REPORT, report_sql.REPORT_REVERSE),
    ]
