"""Answer a visitor with `builtin:grounded`: an ordered list of rules; the first that returns a move wins. Pure.

It promises nothing, claims nothing that no passage or tool said, and calls only available tools of the briefing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from llm.attachments import PROTECTED
from llm.briefing import Briefing, WithheldTool
from llm.enums import InteractionRegister
from llm.offline import answers, arguments, dialogue, intents, phrases, results
from llm.offline.arguments import Kind
from llm.offline.dialogue import State, Task
from llm.offline.matching import best_matches, match
from llm.offline.moves import CallTool, Move, ToolResult, direct, to_planner
from llm.schemas import AgentResponse

_ASK_AT_MOST = 3
_SUGGEST_AT_MOST = 4
_EXPLORING = InteractionRegister.EXPLORATION


@dataclass(frozen=True)
class Situation:
    briefing: Briefing
    available: Collection[str]

    @cached_property
    def states(self) -> tuple[State, State]:
        return dialogue.states_before_and_after(self.briefing)

    @property
    def before(self) -> State:
        return self.states[0]

    @property
    def now(self) -> State:
        return self.states[1]

    @cached_property
    def text(self) -> str:
        return dialogue.text_of(self.briefing)

    @cached_property
    def finding(self) -> answers.Finding:
        return answers.find(intents.without_greeting(self.text), self.briefing.passages, context=self._context())

    def say(
        self,
        message: str,
        reason: str,
        register: InteractionRegister = InteractionRegister.STATUS,
        *,
        suggestions: Sequence[str] = (),
        handoff: bool = False,
        finding: answers.Finding = answers.NOTHING,
    ) -> Move:
        response = AgentResponse(
            message=phrases.avoid_repetition(message, self.last_bot_text()),
            suggestions=list(dict.fromkeys(suggestions))[:_SUGGEST_AT_MOST],
            handoff=handoff,
            citations=list(finding.citations),
        )
        return direct(self.briefing, response, reason, register)

    def last_bot_text(self) -> str:
        return next((message.text for message in reversed(self.briefing.history) if message.sender == "bot"), "")

    @property
    def finding_leans_on_context(self) -> bool:
        return bool(self._context())

    def _context(self) -> str:
        """The question before, for "and outside the house?"."""
        if not intents.is_follow_up(self.text):
            return ""
        earlier = (message.text for message in reversed(self.briefing.history) if message.sender == "visitor")
        return next((text for text in earlier if text != self.briefing.text), "")


def next_move(briefing: Briefing, done: Sequence[ToolResult], available: Collection[str]) -> Move:
    situation = Situation(briefing, available)
    if done:
        return _tell_result(situation, done[-1])
    return next(move for rule in _RULES if (move := rule(situation)) is not None)


def _rephrase(here: Situation) -> Move | None:
    """Decline to rephrase an answer that a gate blocked: this model has no other words for it."""
    if not here.briefing.instruction:
        return None
    return _offer(here, phrases.MAY_NOT_SAY, "answer_withheld")


def _person(here: Situation) -> Move | None:
    accepted = phrases.OFFER in here.last_bot_text() and intents.is_yes(here.text)
    if accepted or intents.wants_person(here.text):
        return here.say(phrases.PERSON, "person_requested", handoff=True)
    return None


def _cancel(here: Situation) -> Move | None:
    waiting = here.before.task or here.before.held
    cancels = waiting and intents.is_cancel(here.text) and not here.now.answered
    return here.say(phrases.CANCELLED, "cancelled") if cancels else None


def _answered(here: Situation) -> Move | None:
    return _go_on(here, here.now.task, thanks=True) if here.now.answered and here.now.task else None


def _form(here: Situation) -> Move | None:
    return here.say(phrases.FORM_RECEIVED, "form_received") if here.briefing.is_form else None


def _why_declined(here: Situation) -> Move | None:
    """Tell why a colleague declined the latest request, in the words that the visitor was told."""
    asked = here.before.task or here.before.held
    if not here.briefing.declined:
        return None
    if not intents.asks_why_declined(here.text) and (asked or not intents.asks_why(here.text)):
        return None
    title, why = here.briefing.declined[-1]
    reason = phrases.DECLINED_BECAUSE.get(why)
    message = f"{phrases.DECLINED} {title}. {reason or f'{phrases.NO_REASON} {phrases.OFFER}'}"
    return here.say(message, "declined_because")


def _small_talk(here: Situation) -> Move | None:
    text = here.text
    if intents.is_greeting(text):
        first = not any(message.sender == "bot" for message in here.briefing.history)
        hello = here.briefing.greeting if first and here.briefing.greeting else phrases.HELLO
        return here.say(hello, "greeting", suggestions=here.briefing.suggestions)
    if intents.is_thanks(text):
        return here.say(phrases.THANKS, "thanks")
    if intents.is_goodbye(text):
        return here.say(phrases.GOODBYE, "goodbye")
    if intents.asks_about_me(text):
        return here.say(phrases.about_me(here.briefing.title), "about_me", suggestions=here.briefing.suggestions)
    if intents.asks_capabilities(text):
        return here.say(_capabilities(here.briefing), "capabilities", suggestions=here.briefing.suggestions)
    return None


def _who(here: Situation) -> Move | None:
    """The visitor says who they are, after they were asked to."""
    held = here.before.held
    if held is None or here.now.task is not here.before.task:
        return None
    if not dialogue.identifies(here.before, here.text, here.briefing.today):
        return None
    still = _withheld(here.briefing, held)
    if still is None:
        return _go_on(here, held)
    return here.say(f"{phrases.NOT_CONFIRMED} {still.ask}", "identity_incomplete")


def _wish(here: Situation) -> Move | None:
    """A tool that this very message asks for, unless the passages answer it better."""
    task = here.now.task
    if task is None or task is here.before.task or _passages_know_better(here, task):
        return None
    return _go_on(here, task)


def _sorrow(here: Situation) -> Move | None:
    """Anger, fear or grief is answered with sympathy and a person, unless the passages surely answer it."""
    if not intents.is_sorrow(here.text) or here.finding.is_sure:
        return None
    message = f"{phrases.SORRY_TO_HEAR}{_back_to(here.before.task) or f' {phrases.OFFER}'}"
    return here.say(message, "sympathy", suggestions=[phrases.TALK_TO_PERSON])


def _which(here: Situation) -> Move | None:
    """Several tools are meant alike."""
    known = (*here.briefing.tools, *(held.tool for held in here.briefing.withheld))
    meant = best_matches(here.text, known)
    if len(meant) < 2 or (here.finding.is_worth_showing and intents.looks_like_question(here.text)):
        return None
    choices = [match_.tool.description for match_ in meant]
    return here.say(phrases.WHICH, "ambiguous", InteractionRegister.EXECUTION, suggestions=choices)


def _which_passage(here: Situation) -> Move | None:
    """One word, or none that carries meaning, that two passages answer alike."""
    places = [citation.title.rpartition(" / ")[2] for citation in here.finding.citations]
    if len(set(places)) < 2 or not intents.is_vague(here.text) or here.finding_leans_on_context:
        return None
    choices = [re.sub(r"^[\d.]+ ", "", place) for place in places]
    message = f"{phrases.SEVERAL} {'; '.join(choices)}. {phrases.WHICH}"
    return here.say(message, "ambiguous_passages", _EXPLORING, suggestions=choices)


def _knowledge(here: Situation) -> Move | None:
    if not here.finding.is_worth_showing:
        return None
    quotes, back = _quoted(here.finding), _back_to(here.before.task)
    if here.finding.is_sure:
        return here.say(f"{quotes}{back}", "answer_from_passages", _EXPLORING, finding=here.finding)
    message = f"{phrases.UNSURE} The closest I found: {quotes}{back or f' {phrases.OFFER}'}"
    return here.say(message, "uncertain", _EXPLORING, suggestions=[phrases.TALK_TO_PERSON], finding=here.finding)


def _file(here: Situation) -> Move | None:
    """Quote a file of the visitor that surely answers, and better than the documents do."""
    if not intents.looks_like_question(here.text):
        return None
    found = answers.find_in_files(intents.without_greeting(here.text), here.briefing.attachments)
    if found is answers.NOTHING or (here.finding.is_sure and here.finding.coverage >= found.coverage):
        return None
    return here.say(_quoted(found), "answer_from_file", _EXPLORING, finding=found)


def _unread_file(here: Situation) -> Move | None:
    """The newest file cannot be read, and nothing else answers what is asked."""
    file = here.briefing.attachments[-1] if here.briefing.attachments else None
    if file is None or file.text or not intents.looks_like_question(here.text):
        return None
    phrase = phrases.FILE_PROTECTED if file.problem == PROTECTED else phrases.FILE_UNREAD
    return _offer(here, phrase.format(name=file.name), "file_unread")


def _unreadable(here: Situation) -> Move | None:
    """Something was asked and the message does not hold it."""
    task = here.before.task
    if task is None or task.asked is None:
        return None
    unknown = intents.looks_like_question(here.text)
    return _ask(here, task, task.asked, phrases.UNKNOWN if unknown else phrases.UNREADABLE)


def _yes_or_no(here: Situation) -> Move | None:
    return here.say(phrases.FINE, "acknowledged") if intents.is_yes(here.text) or intents.is_no(here.text) else None


def _introduced(here: Situation) -> Move | None:
    if dialogue.tells_who(here.text, here.briefing.today) and intents.introduces(here.text):
        return here.say(phrases.KNOWN_NOW, "introduced", suggestions=here.briefing.suggestions)
    return None


def _unknown(here: Situation) -> Move:
    if not intents.has_meaning(here.text):
        return _offer(here, phrases.NOT_UNDERSTOOD, "not_understood")
    asks = intents.looks_like_question(here.text)
    return _offer(here, phrases.UNKNOWN if asks else phrases.NOT_SURE_HOW, "unknown")


_RULES: tuple[Callable[[Situation], Move | None], ...] = (
    _rephrase,
    _person,
    _cancel,
    _answered,
    _form,
    _why_declined,
    _small_talk,
    _who,
    _wish,
    _sorrow,
    _which,
    _file,
    _which_passage,
    _knowledge,
    _unread_file,
    _unreadable,
    _yes_or_no,
    _introduced,
    _unknown,
)


def _go_on(here: Situation, task: Task, *, thanks: bool = False) -> Move:
    """Ask for what is missing, or do it: call a read tool, hand an acting one to the planner."""
    withheld = _withheld(here.briefing, task)
    if withheld is not None:
        return here.say(f"{phrases.FIRST_WHO} {withheld.ask}", "tool_withheld", InteractionRegister.EXECUTION)
    missing = arguments.missing(task.tool, task.args)
    if missing:
        return _ask(here, task, missing[0], phrases.THANK_YOU if thanks else phrases.CAN_DO)
    if not arguments.fits(task.tool, task.args):
        return _offer(here, phrases.TOOL_FAILED, "arguments_refused")
    if task.tool.name in here.available:
        return CallTool(task.tool.name, task.args)
    return (
        to_planner(here.briefing, "acting_tool_requested")
        if task.tool.acting
        else _offer(here, phrases.TOOL_FAILED, "tool_missing")
    )


def _ask(here: Situation, task: Task, name: str, lead: str) -> Move:
    schema = arguments.properties(task.tool).get(name, {})
    choices = [str(choice) for choice in schema["enum"]] if arguments.kind_of(name, schema) is Kind.CHOICE else []
    message = f"{lead} {arguments.question(task.tool, name)}"
    tired = name == task.asked and task.times >= _ASK_AT_MOST
    if tired:
        message, choices = f"{message} {phrases.OFFER}", [*choices[:3], phrases.TALK_TO_PERSON]
    return here.say(message, "argument_missing", InteractionRegister.EXECUTION, suggestions=choices)


def _tell_result(here: Situation, done: ToolResult) -> Move:
    failure = "" if done.failed else results.failure_of(done.content)
    if failure is not None:
        return _offer(here, failure or phrases.TOOL_FAILED, "tool_failed")
    text = results.describe_result(done.content)
    return here.say(text, "tool_result") if text else _offer(here, phrases.NOTHING_FOUND, "tool_found_nothing")


def _offer(here: Situation, message: str, reason: str) -> Move:
    suggestions = [*here.briefing.suggestions[: _SUGGEST_AT_MOST - 1], phrases.TALK_TO_PERSON]
    return here.say(f"{message} {phrases.OFFER}", reason, suggestions=suggestions)


def _withheld(briefing: Briefing, task: Task) -> WithheldTool | None:
    """How the task's tool is withheld; a tool that can be called is not."""
    if any(tool.name == task.tool.name for tool in briefing.tools):
        return None
    return next((held for held in briefing.withheld if held.tool.name == task.tool.name), None)


def _passages_know_better(here: Situation, task: Task) -> bool:
    """Whether the passages explain the message's words better than the tool does.

    Never for a message that names an id, or a wish for something to be done in more than one of the tool's words. One
    word without a phrase of the tool ("flood cover", where "my cover" is one) is about the subject, not about what is
    the visitor's.
    """
    tool_match, finding = match(here.text, task.tool), here.finding
    if tool_match.has_id:
        return False
    if tool_match.strength == 1 and tool_match.literal == 0:
        return finding.is_worth_showing
    known = finding.is_sure or (finding.is_near and finding.coverage >= 2 * tool_match.coverage)
    if not known or finding.coverage <= tool_match.coverage:
        return False
    asks = intents.is_question if task.tool.acting else intents.looks_like_question
    return tool_match.strength == 1 or asks(here.text)


def _back_to(task: Task | None) -> str:
    return f"\n\n{phrases.BACK_TO} {arguments.question(task.tool, task.asked)}" if task and task.asked else ""


def _quoted(finding: answers.Finding) -> str:
    parts = (
        f'{"And in" if number > 1 else "From"} "{citation.title}": "{" ".join(citation.quote.split())}" [{number}]'
        for number, citation in enumerate(finding.citations, start=1)
    )
    return " ".join(parts)


def _capabilities(briefing: Briefing) -> str:
    now = [tool.description.strip().rstrip(".") for tool in briefing.tools if tool.keywords]
    later = [held.tool.description.strip().rstrip(".") for held in briefing.withheld]
    lines = ["I answer questions from our documents, word for word."]
    lines += [f"I can also help with this: {'; '.join(now)}."] if now else []
    lines += [f"Once I know who you are: {'; '.join(later)}."] if later else []
    return " ".join((*lines, "And I can ask a person to take over."))
