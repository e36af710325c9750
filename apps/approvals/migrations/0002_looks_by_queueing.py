from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

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
