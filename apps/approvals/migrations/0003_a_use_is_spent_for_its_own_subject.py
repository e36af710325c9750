from django.db import migrations

from apps.approvals.sql import spend


class Migration(migrations.Migration):
    """Spend a use only for what the token names. The way back leaves the stricter function, which takes the same."""

    dependencies = [("approvals", "0002_kinds_and_scopes_in_use")]

    operations = [migrations.RunSQL(spend.SPEND, migrations.RunSQL.noop)]
