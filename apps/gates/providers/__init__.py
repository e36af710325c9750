"""The providers of gates, one class each, registered here. A gate without a known provider blocks (spec 5.4, 5.5)."""

from __future__ import annotations

from apps.gates.providers.base import Provider
from apps.gates.providers.custom import Detector
from apps.gates.providers.guardrails_ai import GuardrailsDetector
from apps.gates.providers.llm import Model
from apps.gates.providers.predicate import Predicate
from apps.gates.providers.script import Script

# In the order in which they are offered.
PROVIDERS: dict[str, Provider] = {
    provider.kind: provider for provider in (Predicate(), Detector(), Script(), Model(), GuardrailsDetector())
}

__all__ = ["PROVIDERS", "Provider"]
