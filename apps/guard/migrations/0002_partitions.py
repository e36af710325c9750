from django.db import migrations

from kernel.tenancy.migrations import PartitionByMonth


class Migration(migrations.Migration):
    # The index of the first partition is made concurrently (`PartitionByMonth`).
    atomic = False

    # None that `0001_initial` replaces: where that one ran, they stand as applied.
    replaces = [
        ("guard", "0010_partitions"),
    ]

    dependencies = [
        ("guard", "0001_initial"),
    ]

    operations = [
        PartitionByMonth("guard_spendentry", "day"),
    ]
