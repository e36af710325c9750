from django.db import migrations, models

from silas_platform.telemetry import metrics_sql


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("silas_platform", "0001_metrics"),
        ("silas_platform", "0002_installed_version"),
    ]

    dependencies = [
        ("approvals", "0001_initial"),
        ("bus", "0001_initial"),
        ("guard", "0001_initial"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name='InstalledVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.CharField(max_length=40)),
                ('migrated_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.RunSQL(metrics_sql.FORWARD, metrics_sql.REVERSE),
    ]
