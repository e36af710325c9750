"""The spend ledger in a partition for each month of `day`."""

from django.db import migrations

from kernel.tenancy.migrations import PartitionByMonth


class Migration(migrations.Migration):
    # The check and the index of the old table are made without locking it (`PartitionByMonth`).
    atomic = False
    dependencies = [("guard", "0009_artifacts")]

    operations = [PartitionByMonth("guard_spendentry", "day")]
