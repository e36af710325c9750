from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("silas_sessions", "0012_teams")]

    operations = [
        migrations.AddField(
            model_name="visitorfile",
            name="sender",
            field=models.CharField(
                choices=[("visitor", "Visitor"), ("bot", "Bot"), ("human", "Person"), ("system", "System")],
                default="visitor",
                max_length=7,
            ),
        ),
    ]
