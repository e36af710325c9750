from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0013_files_of_staff")]

    operations = [
        migrations.AddField(
            model_name="chatsession",
            name="visitor_read_seq",
            field=models.PositiveBigIntegerField(default=0, db_default=0),
        ),
        migrations.AddField(
            model_name="visitoroffers",
            name="read_receipts",
            field=models.BooleanField(
                default=False,
                db_default=False,
                help_text="Visitors see when the person who answers has read their messages",
                verbose_name="read receipts",
            ),
        ),
    ]
