from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("autonomy", "0007_plain_labels")]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="key",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
