from django.db import migrations

from kernel.tenancy.migrations import PartitionByMonth


class Migration(migrations.Migration):
    # The index of the first partition is made concurrently (`PartitionByMonth`).
    atomic = False

    replaces = [
        ("guard", "0001_squashed"),
        ("guard", "0002_admit_at_once"),
        ("guard", "0002_read_file"),
        ("guard", "0003_content_marks"),
        ("guard", "0003_phases_in_order"),
        ("guard", "0004_holders"),
        ("guard", "0004_reserve_tokens"),
        ("guard", "0005_marked_turn"),
        ("guard", "0005_prices"),
        ("guard", "0006_one_decision"),
        ("guard", "0006_running"),
        ("guard", "0007_lost_calls"),
        ("guard", "0007_outside_tools"),
        ("guard", "0008_calls_in_one_statement"),
        ("guard", "0008_reworded_labels"),
        ("guard", "0009_artifacts"),
        ("guard", "0009_run_connection"),
        ("guard", "0010_partitions"),
        ("guard", "0010_settle_at_once"),
    ]

    dependencies = [
        ("guard", "0001_initial"),
    ]

    operations = [
        PartitionByMonth("guard_spendentry", "day"),
    ]
