"""Count the words and lines of a text."""

import argparse
import json

parser = argparse.ArgumentParser(description="Count the words and lines of a text.")
parser.add_argument("--text", required=True, help="the text")
text = parser.parse_args().text
print(json.dumps({"words": len(text.split()), "lines": len(text.splitlines())}))
