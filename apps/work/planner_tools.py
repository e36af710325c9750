"""Tools of a planner that is asked for help: request facts, search the company's knowledge, validate a plan.

Requesting returns at once: the questions are sent when the planner has ended its turn (spec 19.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apps.work import plans
from apps.work.researcher import READS_KNOWLEDGE
from apps.work.services.planning import PlanningJob
from apps.work.services.research import Question
from kernel.errors import SilasError
from llm.loading import load

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

_LONGEST_TASK, _LONGEST_FORMAT, _MOST_TOKENS = 4000, 300, 2000


@dataclass
class PlannerTools:
    """The questions of one planner run. `room`: how many it may ask; `known`: the keys of those asked before."""

    room: int
    known: frozenset[str]
    questions: list[Question] = field(default_factory=list)

    def toolset(self, job: PlanningJob) -> AbstractToolset[Any]:
        load()
        from pydantic_ai.toolsets import CombinedToolset, FunctionToolset

        from apps.guard.toolset import GuardedToolset

        access, levels = frozenset({READS_KNOWLEDGE.name}), {"levels": ("public",)}
        reading = GuardedToolset(job.run, (READS_KNOWLEDGE,), access, job.gates, levels).chained()
        return CombinedToolset([FunctionToolset([self.request_research, validate_plan]), reading])

    def request_research(self, task: str, return_format: str, max_tokens: int = 500) -> dict[str, str]:
        """Ask for facts. The answers come with your next turn; end this one after you have asked.

        Args:
            task: What you want to know, in one or two sentences.
            return_format: The form of the answer, such as "a number" or "three lines".
            max_tokens: How long the answer may be.
        """
        question = Question(
            " ".join(task.split())[:_LONGEST_TASK],
            " ".join(return_format.split())[:_LONGEST_FORMAT],
            min(max(max_tokens, 1), _MOST_TOKENS),
        )
        if not question.task or not question.return_format:
            return {"refused": "say what you want to know, and in which form"}
        if question.key in self.known | {earlier.key for earlier in self.questions}:
            return {"asked": "already"}
        if len(self.questions) >= self.room:
            return {"refused": "no more research: finish with what you have"}
        self.questions.append(question)
        return {"asked": "yes; the answer comes with your next turn"}


def validate_plan(plan_markdown: str) -> dict[str, str]:
    """Check a plan before you give it.

    Args:
        plan_markdown: The whole plan with its front matter.
    """
    try:
        plans.parse(plan_markdown)
    except SilasError as refusal:
        return {"wrong": refusal.message}
    return {"wrong": ""}
