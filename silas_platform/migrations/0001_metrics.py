"""Adds the function that counts for /metrics."""

from django.db import migrations

from silas_platform.telemetry import metrics_sql


class Migration(migrations.Migration):
    initial = True
    dependencies = [
        ("approvals", "0016_decision_links"),
        ("bus", "0015_teams"),
        ("guard", "0009_artifacts"),
        ("tenants", "0012_apps_register_themselves"),
    ]

    operations = [migrations.RunSQL(metrics_sql.FORWARD, metrics_sql.REVERSE)]
