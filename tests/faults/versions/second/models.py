from tests.faults.versions.room import keep

keep("writer", "second")
keep("written_by", "second")
