"""An agent as a program: reads a handoff from stdin and answers as its arguments say.

phase.py [clarify] [child-asks]
"""

import json
import re
import sys

prompt = sys.stdin.read()
found = re.search(r"```json\n(.*?)\n```", prompt, re.DOTALL)
assert found is not None
request = json.loads(found[1])
findings: dict[str, object] = {"complexity": "simple"}
decision = "PROCEED"
if "clarify" in sys.argv and "Answered:" not in prompt:
    decision, findings["questions"] = "CLARIFY", ["Which provider?"]
if request["phase"] == "write":
    findings["files_changed"] = ["a.py"]
answer = {"decision": decision, "context_summary": f"{request['phase']} done", "findings": findings}
print(f"Some prose first.\n```json\n{json.dumps(answer)}\n```")
