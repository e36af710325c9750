from typing import ClassVar

from django.db import migrations

from apps.approvals import spend_sql


class Migration(migrations.Migration):
    dependencies: ClassVar = [("approvals", "0004_course_of_cards")]

    operations: ClassVar = [migrations.RunSQL(spend_sql.SPEND, spend_sql.SPEND_REVERSE)]
