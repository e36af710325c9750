from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    lock_reason = "The index holds only what a member marked as unread, which is nothing yet; the column has a default of the database."

    dependencies = [
        ("inbox", "0002_conversations"),
        ("silas_sessions", "0001_initial"),
        ("tenants", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="readmark",
            name="marked_unread",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddIndex(
            model_name="readmark",
            index=models.Index(condition=models.Q(("marked_unread", True)), fields=["user"], name="read_mark_unread"),
        ),
    ]
