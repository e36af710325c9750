"""When are the customer's callbacks?"""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from desk import read_book, spoken

from silas_skill.account import answer

booked = {key: row["data"] for key, row in read_book("callbacks").items() if row["data"]["status"] == "booked"}
lines = [f"{key}: claim {data['claim']}, {spoken(data['start'])}" for key, data in sorted(booked.items())]
answer(say="; ".join(lines) + "." if lines else "There is no callback booked.", callbacks=sorted(booked))
