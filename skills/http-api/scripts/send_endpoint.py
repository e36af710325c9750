"""Send JSON to a declared endpoint, once, and leave what it answered for the check."""

import json
import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from endpoints import ROOT, answer, call, declared, read_args, refuse

args = read_args()
try:
    body = json.dumps(json.loads(args["body"])).encode()
except ValueError:
    refuse("What is to be sent is no JSON.")
status, value = call(declared(args["endpoint"], {"POST", "PUT", "PATCH", "DELETE"}), args.get("values", {}), body)
(ROOT / "out/response.json").write_text(json.dumps({"endpoint": args["endpoint"], "status": status}))
if status >= 300:
    refuse(f"The endpoint did not take it: status {status}.")
answer(say=f"{args['endpoint']} took it.", status=status, value=value)
