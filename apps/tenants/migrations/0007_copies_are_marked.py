"""Mark the companies that are copies of others, in which simulations run."""

from django.db import migrations, models


def mark_copies(apps, schema_editor):
    tenants = apps.get_model("tenants", "Tenant").objects.using(schema_editor.connection.alias)
    tenants.filter(slug__regex=r"^simulation-[0-9a-f]{16}$").update(is_simulated=True)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_reworded_labels")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="is_simulated",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.RunPython(mark_copies, migrations.RunPython.noop),
    ]
