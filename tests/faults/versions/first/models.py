from tests.faults.versions.room import keep

keep("writer", "first")
