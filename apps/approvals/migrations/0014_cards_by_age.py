from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0013_card_kinds_without_migrations'),
        ('tenants', '0007_copies_are_marked'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name='card',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='card_newest'),
        ),
    ]
