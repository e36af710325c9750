from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    lock_reason = "One row for each card and person who opened it: a million are indexed in about a second, and only a person who opens a card waits."

    dependencies = [
        ('approvals', '0001_initial'),
        ('tenants', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='look',
            name='look_once_a_person',
        ),
        migrations.AddField(
            model_name='look',
            name='queued_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddConstraint(
            model_name='look',
            constraint=models.UniqueConstraint(fields=('card', 'user', 'queued_at'), name='look_once_a_person_and_queueing', nulls_distinct=False),
        ),
    ]
