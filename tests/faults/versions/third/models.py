from tests.faults.versions.room import keep

keep("written_by", "third")
