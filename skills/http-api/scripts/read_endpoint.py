"""Read from a declared endpoint."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from endpoints import answer, call, declared, read_args, refuse

args = read_args()
status, value = call(declared(args["endpoint"], {"GET"}), args.get("values", {}))
if status >= 300:
    refuse(f"The endpoint answered with status {status}.")
answer(status=status, value=value)
