"""The kinds of cards are listed by a function, so that a new kind needs no migration. The column stays as it is."""

from django.db import migrations, models

import apps.approvals.cards.kinds


class Migration(migrations.Migration):
    dependencies = [("approvals", "0012_reworded_labels")]

    operations = [
        migrations.AlterField(
            model_name="card",
            name="kind",
            field=models.CharField(choices=apps.approvals.cards.kinds.kind_labels, max_length=24),
        ),
    ]
