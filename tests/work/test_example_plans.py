"""The specification's own example plans can be parsed (spec 13, restated in contract silas 16)."""

from __future__ import annotations

import pytest

from apps.work import plans
from apps.work.schemas import WorkItemSpec

BUG_FIX = """---
id: task-bugfix
type: task
title: Fix the token refresh
interaction_mode: act_and_report
budget: { max_tokens: 200000, max_cost_usd: 2.00, max_wall_time_seconds: 1800 }
verify:
  - name: tests_pass
    run: "pytest tests/test_refresh.py -q"
    expect: { exit_code: 0 }
  - name: lint
    run: "ruff check src"
    expect: { exit_code: 0 }
on_stuck: consult_planner
---

# Context
Refresh fails when the clock is ahead.

# What to do
Read the module, change the comparison, run the tests.

# Constraints
Change nothing else.
"""
SUPPORT = """---
id: goal-support
type: goal
title: Customer support
agent: stream
schedule: always_on
interaction_mode: confirm_only_when_required
gates:
  - {name: toxicity_in, on: every_user_message, provider: guardrails_ai, check: toxicity,
      config: {threshold: 0.7}, on_block: escalate_human}
  - {name: toxicity_out, on: every_agent_response, provider: guardrails_ai, check: toxicity,
      config: {threshold: 0.3}, on_block: suppress_and_escalate}
  - {name: pii_out, on: every_agent_response, provider: guardrails_ai, check: pii,
      config: {entities: [CREDIT_CARD, SSN]}, on_block: suppress_and_rephrase}
  - {name: jailbreak_in, on: every_user_message, provider: guardrails_ai, check: jailbreak, on_block: polite_redirect}
  - name: identity_verified
    on: every_user_message
    provider: script
    type: custom_check
    check: verify_customer
    config: {script: guards/verify_customer.py, args_from_env: [CUSTOMER_NAME, CUSTOMER_DOB]}
    check_expect: {equals: "verified"}
    on_block: retry_verification
access_levels:
  public: {description: Anyone, tools: [faq_search, product_info]}
  verified: {description: Known customers, tools: [faq_search, product_info, policy_lookup,
      claim_status], requires: [identity_verified], expires_after: 900}
escalation:
  escalate_human: {action: transfer_to_queue, queue: support_l2, message: Connecting you.}
  suppress_and_escalate: {action: suppress_and_escalate, message: One moment., fallback: escalate_human}
  suppress_and_rephrase: {action: suppress_and_rephrase, instruction: Leave out personal data.,
      max_retries: 2, fallback: escalate_human}
  polite_redirect: {action: respond, message: I can help with policies and claims.}
  retry_verification: {action: respond, message: That did not match. Please try again.}
---
Help customers.
"""
TRADE = """---
id: task-trade
type: task
title: Rebalance within limits
interaction_mode: confirm_only_when_required
budget: {max_tokens: 100000, max_cost_usd: 1.50, max_wall_time_seconds: 600}
gates:
  - name: confidence_check
    on: after_step
    after_step: 1
    type: numeric_range
    extract: confidence_score
    auto_approve: {min: 0.75, max: 1.0}
    require_approval: {min: 0.5, max: 0.75}
    block: {outside: [0.0, 1.0]}
    on_block: abort_trade
  - name: position_size
    on: after_step
    after_step: 2
    type: numeric_range
    extract: position_usd
    auto_approve: {min: 0, max: 25}
    require_approval: {min: 25, max: 100}
    block: {outside: [0, 100]}
    on_block: abort_trade
escalation:
  abort_trade: {action: report, message: Outside of the limits.}
verify:
  - {name: filled, run: "python3 scripts/order_status.py", expect: {equals: filled}}
---
Buy what the model says, within the limits.
"""
MONITOR = """---
id: goal-health
type: goal
title: Keep the service healthy
schedule: "*/30 * * * *"
interaction_mode: act_and_report
budget: {max_tokens: 10000, max_cost_usd: 0.10, max_wall_time_seconds: 120}
verify:
  - {name: http_ok, run: "curl -fsS http://127.0.0.1:8000/status", expect: {equals: ok}, network: true}
  - {name: process_alive, run: "pgrep -f server", expect: {exit_code: 0}}
  - {name: backup_age, run: "python3 scripts/backup_age.py", expect: {output_lt: 3600}}
on_failure: spawn_task
failure_context: |
  These checks failed: $failed_checks
  Find out why and mend it.
---
Look after the service.
"""
DEPLOY = """---
id: project-deploy
type: project
title: Deploy the new version
tasks: [build, test, migrate, deploy, announce]
budget: {max_tokens: 500000, max_cost_usd: 10, max_wall_time_seconds: 7200}
verify:
  - {name: production_healthy, run: "curl -fsS https://example.org/health", expect: {contains: ok}, network: true}
---
Deploy it.
"""


@pytest.mark.parametrize(
    ("markdown", "kind", "lane", "tokens", "checks", "gates"),
    [
        (BUG_FIX, "task", "ephemeral", 200_000, 2, 0),
        (SUPPORT, "goal", "stream", 200_000, 0, 5),
        (TRADE, "task", "ephemeral", 100_000, 1, 2),
        (MONITOR, "goal", "ephemeral", 10_000, 3, 0),
        (DEPLOY, "project", "ephemeral", 500_000, 1, 0),
    ],
)
def test_example_plan_is_read(markdown: str, kind: str, lane: str, tokens: int, checks: int, gates: int) -> None:
    spec = plans.parse(markdown)
    assert spec.type == kind
    assert spec.agent == lane
    assert spec.budget.max_tokens == tokens
    assert len(spec.verify) == checks
    assert len(spec.gates) == gates


@pytest.mark.parametrize("markdown", [BUG_FIX, SUPPORT, TRADE, MONITOR, DEPLOY])
def test_example_plan_reads_back_from_its_stored_text(markdown: str) -> None:
    spec = plans.parse(markdown)
    assert WorkItemSpec.model_validate_json(spec.as_text()).plan_hash == spec.plan_hash
