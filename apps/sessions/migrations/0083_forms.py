from django.db import migrations, models


class Migration(migrations.Migration):
    """A visitor may be asked by a form, too; what they filled in stands on its card."""

    dependencies = [
        ("silas_sessions", "0082_contact"),
    ]

    operations = [
        migrations.AddField(
            model_name="visitorcard",
            name="answers",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AlterField(
            model_name="visitorcard",
            name="kind",
            field=models.CharField(
                choices=[("decision", "Question"), ("secure_input", "Secret needed"), ("form", "Form")], max_length=16
            ),
        ),
        migrations.AddConstraint(
            model_name="visitorcard",
            constraint=models.CheckConstraint(
                condition=models.Q(("answers", {}), models.Q(("kind", "form"), ("status", "answered")), _connector="OR"),
                name="visitor_card_fills_forms",
            ),
        ),
    ]
