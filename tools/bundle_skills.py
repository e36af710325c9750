"""Write apps/skills/bundled.json: the content hashes of the skills in skills/, after those that shipped before.

Run it after a change in skills/. Older hashes stay, because installations go on with the version they have.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.dev")

from apps.skills.loader import read_folder  # noqa: E402  (needs the path above)
from apps.skills.rules import content_digest  # noqa: E402

MANIFEST = ROOT / "apps" / "skills" / "bundled.json"


def add(known: dict[str, list[str]], skills: Path) -> None:
    for folder in sorted(skills.iterdir()):
        if (folder / "SKILL.md").is_file():
            digest = content_digest(read_folder(folder))
            if digest not in known.setdefault(folder.name, []):
                known[folder.name].append(digest)


def main() -> None:
    known = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    add(known, ROOT / "skills")
    MANIFEST.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
