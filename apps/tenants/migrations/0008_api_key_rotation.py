"""Let API keys expire, and be rotated while the secret before stays valid for a time."""

from django.db import migrations, models

# A request's key is looked up before its tenant is known, during an overlap by the hash of the secret before.
FIND = """
CREATE POLICY tenant_lookup_previous ON tenants_apikey FOR SELECT
    USING (previous_hashed::text = (SELECT nullif(current_setting('silas.lookup', true), '')));
"""


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0007_copies_are_marked'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='expires_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='previous_hashed',
            field=models.CharField(editable=False, max_length=64, null=True, unique=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='previous_until',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddConstraint(
            model_name='apikey',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('previous_hashed__isnull', True), ('previous_until__isnull', True)), models.Q(('previous_hashed__isnull', False), ('previous_until__isnull', False)), _connector='OR'), name='api_key_overlap_ends'),
        ),
        migrations.RunSQL(FIND, "DROP POLICY tenant_lookup_previous ON tenants_apikey;"),
    ]
