"""What a run sends to a model's provider: nothing, texts without personal data (the default), or texts as they are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.autonomy import services
from apps.autonomy.anonymiser import Anonymiser
from apps.autonomy.enums import BuiltinWorkflow, Egress
from apps.guard.models import ToolCall
from apps.knowledge import provider_vectors
from apps.knowledge.models import SearchSettings
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import OTHER, House
from tests.fakes.openai_server import Reply, final

MODEL = "openai-chat:gpt-4o-mini"
SAID = "My name is Anna Meier. Where is my order NW-10427? Write to anna.meier@example.org. [EMAIL_1] is not me."
PERSONAL = ("Anna", "Meier", "10427", "anna.meier@example.org")


def conclude(request: dict[str, Any]) -> Reply:
    """Repeat the placeholder of the name and of the order, as a model does that writes about them."""
    said = json.dumps(request["messages"])
    if "what it came to" not in said:
        return final({"action": "done"})
    names = [each for each in ("[PERSON_1]", "[REFERENCE_1]", "[TEXT_1]", "[EMAIL_1]") if each in said]
    return final({"summary": "A parcel is late.", "findings": [{"title": f"Late: {' '.join(names)}"}]})


def look(house: House) -> Any:
    """Run a task that was passed a conversation's text."""
    session = house.run_now(house.task(model_name=MODEL, prompt="Summarise what the customer wants."))
    house.change(session, context=SAID)
    house.finish()
    return house.session(session.pk)


def test_provider_reads_no_personal_data_and_the_finding_names_the_customer_again(
    modelled: House, provider: Any
) -> None:
    with provider(conclude) as fake:
        session = look(modelled)
    sent = json.dumps(fake.requests, ensure_ascii=False)
    assert [each for each in PERSONAL if each in sent] == []
    assert "where is my order" in sent.lower()
    # An e-mail address is scrubbed from what is stored, as before; what the customer wrote as a placeholder is theirs.
    assert [each.title for each in modelled.findings()] == ["Late: Anna Meier NW-10427 [EMAIL_1] [EMAIL]"]
    egress = modelled.receipt(session)["egress"]
    assert egress == {"tier": "anonymous", "replaced": {"EMAIL": 1, "PERSON": 1, "REFERENCE": 1, "TEXT": 1}}


def use_search_models(house: House) -> None:
    """The company searches by a provider's vectors and has a model order what is found."""
    with tenant_scope(house.tenant):
        SearchSettings.objects.create(
            deployment_id=house.deployment.pk,
            embedding_model="openai:text-embedding-3-small",
            dimensions=384,
            embedded=1,
            total=1,
            reranker=MODEL,
        )
    provider_vectors.breaker_of.cache_clear()


def search_once() -> Callable[[dict[str, Any]], Reply]:
    """Search for what the customer wrote, by its placeholders, then conclude; embed and rank what is asked."""
    steps = iter([{"action": "search", "query": "returns of [PERSON_1] [REFERENCE_1]"}])

    def answer(request: dict[str, Any]) -> Reply:
        if "input" in request:
            return Reply(vectors=tuple((1.0, *[0.0] * 383) for _ in request["input"]))
        said = json.dumps(request["messages"])
        if "Order passages" in said:
            return final({"passages": [1]})
        if "what it came to" in said:
            return final({"summary": "A parcel is late."})
        return final(next(steps, {"action": "done"}))

    return answer


def test_search_of_the_documents_asks_no_provider_unless_texts_leave_as_they_are(
    modelled: House, provider: Any, tmp_path: Path
) -> None:
    modelled.know(tmp_path, hours=OTHER)
    use_search_models(modelled)
    with provider(search_once()) as fake:
        session = look(modelled)
    sent = json.dumps(fake.requests, ensure_ascii=False)
    assert session.status == "completed"
    with tenant_scope(modelled.tenant):
        assert ToolCall.objects.filter(intent="retrieve_chunks", state="executed").count() == 2
    assert [each for each in PERSONAL if each in sent] == []
    assert asked_for_search(modelled) == []

    modelled.do(services.change_settings, user=modelled.owner, egress=Egress.NOTHING.value)
    modelled.ask("Can Anna Meier send back order NW-10427?")
    with provider(search_once()) as fake:
        modelled.through(modelled.task(model_name=MODEL, playbook=BuiltinWorkflow.UNANSWERED.value, prompt=""))
    assert fake.requests == []
    assert asked_for_search(modelled) == []

    modelled.do(services.change_settings, user=modelled.owner, egress=Egress.FULL.value)
    modelled.ask("May Anna Meier return a coat?")
    with provider(search_once()) as fake:
        modelled.through(modelled.task(model_name=MODEL, playbook=BuiltinWorkflow.UNANSWERED.value, prompt=""))
    assert asked_for_search(modelled) == [("embedding", "executed"), ("reranker", "executed")]


def test_search_before_the_analysis_asks_no_provider_and_leaves_it_switched_on(modelled: House, provider: Any) -> None:
    modelled.do(services.change_settings, user=modelled.owner, egress=Egress.FULL.value)
    use_search_models(modelled)
    with provider(lambda request: final({"action": "done"})):
        modelled.through(modelled.task(model_name=MODEL))
    assert asked_for_search(modelled) == []
    with tenant_scope(modelled.tenant):
        assert SearchSettings.objects.get().problem == ""


def asked_for_search(house: House) -> list[tuple[str, str]]:
    """The search's calls of a provider by tool and state, each once."""
    with tenant_scope(house.tenant):
        calls = ToolCall.objects.filter(tool__in=["embedding", "reranker"])
        return sorted(set(calls.values_list("tool", "state")))


def test_owner_raises_and_lowers_what_is_sent(modelled: House, provider: Any) -> None:
    modelled.do(services.change_settings, user=modelled.owner, egress=Egress.FULL.value)
    with provider(conclude) as fake:
        session = look(modelled)
    assert "anna.meier@example.org" in json.dumps(fake.requests)
    assert modelled.receipt(session)["egress"] == {"tier": "full", "replaced": {}}

    modelled.do(services.change_settings, user=modelled.owner, egress=Egress.NOTHING.value)
    with provider(conclude) as fake:
        session = look(modelled)
    assert fake.requests == []
    assert session.output == "This task needs a model."
    assert modelled.receipt(session)["egress"]["tier"] == "nothing"


def test_built_in_model_says_that_a_task_needs_a_model_instead_of_quoting(modelled: House) -> None:
    session = modelled.through(modelled.task(prompt="Summarise the week's complaints about returns and coats."))
    assert session.output == "This task needs a model."
    assert [each.title for each in modelled.findings()] == ["This task needs a model"]


def test_placeholders_are_one_for_each_value_and_come_back() -> None:
    anonymiser = Anonymiser()
    texts = (
        '{"customer": "José Ñandú", "order": "h-20391", "since": "2026-11-27", "paid": "120.50"}',
        "José Ñandú, #5531",
    )
    anonymiser.read(*texts)
    hidden = [anonymiser.hide(text) for text in texts]
    assert hidden[0] == '{"customer": "[PERSON_1]", "order": "[REFERENCE_1]", "since": "2026-11-27", "paid": "120.50"}'
    assert hidden[1] == "[PERSON_1], [REFERENCE_2]"
    assert anonymiser.restore(hidden) == list(texts)
    assert anonymiser.hide_in({"q": ["where is h-20391"]}) == {"q": ["where is [REFERENCE_1]"]}


def test_whole_words_are_hidden_and_of_two_values_the_longer_one() -> None:
    anonymiser = Anonymiser()
    anonymiser.read('{"name": "Anna", "contact": "Anna Meier", "city": "Anna Meier-Bach"}')
    hidden = anonymiser.hide("Anna Meier-Bachs Anna met Annabel, Anna_1 and Anna Meier-Bach. Anna Mei")
    # [PERSON_1] is Anna, [PERSON_2] Anna Meier, [PERSON_3] Anna Meier-Bach.
    assert hidden == "[PERSON_2]-Bachs [PERSON_1] met Annabel, Anna_1 and [PERSON_3]. [PERSON_1] Mei"


def seconds_to_hide(many: int) -> float:
    """Of the processor, the best of three, for a text that names so many orders."""
    text, taken = " ".join(f"NW-{10_000 + number}" for number in range(many)), []
    for _ in range(3):
        anonymiser = Anonymiser()
        anonymiser.read(text)
        before = time.process_time()
        assert "NW-" not in anonymiser.hide(text)
        taken.append(time.process_time() - before)
    return min(taken)


def test_hiding_takes_time_in_proportion_to_the_text() -> None:
    assert seconds_to_hide(6_000) < 8 * seconds_to_hide(1_500)
