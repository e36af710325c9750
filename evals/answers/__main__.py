"""`python -m evals.answers [--held-back]`: measure how well `builtin:grounded` answers single questions.

Each question of `questions.txt` is the first message of a conversation of its own with a demo company and takes the
real path (`apps.simulations.conversation`). Questions are divided into two halves by a hash. Of the tuning half each
miss is printed, of the held-back half totals only: it is to be judged by, not tuned on.

A line of the file is `company | language | expectation | question`. Expectations:

- `answer DOCUMENT SECTION [or …]`: cites one of these passages;
- `unknown`: says that nothing was found and cites nothing;
- `talk`: a human sentence, with no citation and no excuse;
- `sorrow`: words of sympathy (`phrases.SORRY_TO_HEAR`), and a person is offered;
- `identity`: asks who the visitor is; in no other case may it;
- `ask`: asks one clarifying question.

`unknown`, `talk` and `sorrow` must be said in the language of the line.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from bench.stage import servers
from llm.language_detection import detect_language
from llm.offline import phrases
from llm.offline.languages import translate_back

if TYPE_CHECKING:
    from apps.tenants.models import Deployment

FILE = Path(__file__).with_name("questions.txt")
_NO_ANSWER = (phrases.UNKNOWN, phrases.NOT_UNDERSTOOD, phrases.NOT_SURE_HOW)


class Verdict(StrEnum):
    RIGHT = "right"
    CONFIDENTLY_WRONG = "confidently wrong"
    FALSE_UNKNOWN = 'false "don\'t know"'
    OTHER = "otherwise wrong"


@dataclass(frozen=True)
class Question:
    """`wanted` is the kind of the expectation, `places` the passages that answer ("Delivery 1.1")."""

    company: str
    language: str
    wanted: str
    places: frozenset[str]
    text: str

    @property
    def held_back(self) -> bool:
        return hashlib.sha256(self.text.encode()).digest()[-1] % 2 == 1


@dataclass(frozen=True)
class Answer:
    """What was said, and the cited passages as "document section"."""

    said: str
    places: frozenset[str]


def read_questions(path: Path = FILE) -> list[Question]:
    questions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        company, language, expectation, text = line.split(" | ", 3)
        wanted, _, places = expectation.partition(" ")
        answering = frozenset(places.split(" or ")) if places else frozenset()
        questions.append(Question(company, language, wanted, answering, text))
    return questions


def judge(question: Question, answer: Answer) -> Verdict:
    """A wrong passage is confidently wrong unless it is introduced as uncertain."""
    english = translate_back(answer.said)
    nothing = any(phrase in english for phrase in _NO_ANSWER)
    if _meets(question, answer, english, nothing=nothing):
        return Verdict.RIGHT
    if answer.places:
        return Verdict.OTHER if phrases.UNSURE in english else Verdict.CONFIDENTLY_WRONG
    return Verdict.FALSE_UNKNOWN if nothing and question.wanted == "answer" else Verdict.OTHER


def _meets(question: Question, answer: Answer, english: str, *, nothing: bool) -> bool:
    speaks = detect_language([answer.said]) == question.language
    asks_who = phrases.FIRST_WHO in english
    match question.wanted:
        case "answer":
            return bool(question.places & answer.places) and not asks_who
        case "identity":
            return asks_who
        case "ask":
            return english.rstrip().endswith("?") and not answer.places and not nothing and not asks_who
        case "unknown":
            return nothing and not answer.places and speaks
        case "sorrow":
            return phrases.SORRY_TO_HEAR in english and phrases.OFFER in english and not answer.places and speaks
        case "talk":
            return not nothing and not answer.places and not asks_who and speaks
        case other:
            raise ValueError(f"no expectation is called {other!r}")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-back", action="store_true", help="judge by the half that nothing was tuned on")
    held_back = parser.parse_args(argv).held_back
    questions = [question for question in read_questions() if question.held_back == held_back]
    with servers():
        from silas_platform import demo

        demo.seed(progress=lambda line: print(line, file=sys.stderr, flush=True))
        verdicts = asyncio.run(_ask_all(questions, aloud=not held_back))
    print("\n".join(report(questions, verdicts, "held-back" if held_back else "tuning")))
    return 0


async def _ask_all(questions: Sequence[Question], *, aloud: bool) -> list[Verdict]:
    from apps.tenants.queries import deployment_by_key
    from kernel.tenancy import in_thread

    deployments = {}
    for company in {question.company for question in questions}:
        found = await in_thread(deployment_by_key, f"demo-{company}")
        assert found is not None, f"no deployment has the key demo-{company}"
        deployments[company] = found
    verdicts = []
    for question in questions:
        answer = await ask(deployments[question.company], question.text)
        verdicts.append(judge(question, answer))
        if aloud and verdicts[-1] is not Verdict.RIGHT:
            print(f"{verdicts[-1]}: {question.text!r} ({question.wanted}): {answer.said!r}", flush=True)
    return verdicts


async def ask(deployment: Deployment, text: str) -> Answer:
    """What the bot says to `text` as the first message of a conversation."""
    from apps.simulations.conversation import begin, say

    played = await begin(deployment)
    outcome = await say(deployment, played.session_id, text)
    return Answer(outcome.said, frozenset(f"{cite.document} {cite.section}".strip() for cite in outcome.cites))


def report(questions: Sequence[Question], verdicts: Sequence[Verdict], half: str) -> list[str]:
    """Percentages of all questions, of "don't know" of those that the documents answer; then how many of each kind."""
    counts = Counter(verdicts)
    answerable = sum(question.wanted == "answer" for question in questions)
    lines = [f"{len(questions)} questions of the {half} half"]
    for verdict in Verdict:
        of = answerable if verdict is Verdict.FALSE_UNKNOWN else len(questions)
        lines.append(f"{verdict:20} {counts[verdict]:4} of {of:3} {counts[verdict] / max(of, 1):7.1%}")
    for wanted in dict.fromkeys(question.wanted for question in questions):
        mine = [verdict for question, verdict in zip(questions, verdicts, strict=True) if question.wanted == wanted]
        lines.append(f"  {wanted:18} {mine.count(Verdict.RIGHT):4} of {len(mine):3} right")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
