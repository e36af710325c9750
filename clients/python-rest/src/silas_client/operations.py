"""Every operation of the REST API, one method each. Generated from docs/openapi.yaml by `make clients`."""

from __future__ import annotations

from typing import Any, Literal

from silas_client import types as t
from silas_client.transport import Transport


class Operations(Transport):
    """Methods raise `ApiError` for every answer that is not a success, and `httpx2.HTTPError` without an answer."""

    def agents_a2a_card(self, deployment_id: str, *, fields: str | None = None) -> dict[str, Any]:
        """Read the A2A agent card of the chatbot."""
        answer: dict[str, Any] = self.call(
            "GET", f"/api/v1/agents/{self.segment(deployment_id)}/.well-known/agent-card.json", query={"fields": fields}
        )
        return answer

    def agents_a2a_call(
        self,
        deployment_id: str,
        body: t.A2aRequest,
        *,
        format: Literal["events", "json"] | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Call a method of A2A 1.0: `SendMessage`, `SendStreamingMessage`, `GetTask`, `ListTasks`,
        `SubscribeToTask`."""
        answer: dict[str, Any] = self.call(
            "POST",
            f"/api/v1/agents/{self.segment(deployment_id)}/a2a",
            query={"format": format},
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def agents_agui_run(
        self,
        deployment_id: str,
        body: t.AgentRunRequest,
        *,
        format: Literal["events", "json"] | None = None,
        idempotency_key: str | None = None,
    ) -> bytes:
        """Run the chatbot as an AG-UI agent. The answer is a stream of AG-UI events."""
        answer: bytes = self.read(
            "POST",
            f"/api/v1/agents/{self.segment(deployment_id)}/agui",
            query={"format": format},
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def api_keys_list(
        self, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.ApiKeysAnswer:
        """List API keys, newest first, with revoked and expired ones."""
        answer: t.ApiKeysAnswer = self.call(
            "GET", "/api/v1/api-keys", query={"before": before, "fields": fields, "limit": limit}
        )
        return answer

    def api_keys_create(self, body: t.NewApiKeyRequest, *, idempotency_key: str | None = None) -> t.NewApiKeyAnswer:
        """Create an API key with at most the caller's rights."""
        answer: t.NewApiKeyAnswer = self.call(
            "POST", "/api/v1/api-keys", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def api_keys_read(self, key_id: str, *, fields: str | None = None) -> t.ApiKeyAnswer:
        answer: t.ApiKeyAnswer = self.call("GET", f"/api/v1/api-keys/{self.segment(key_id)}", query={"fields": fields})
        return answer

    def api_keys_revoke(self, key_id: str) -> None:
        """Revoke an API key at once. It stays in the list."""
        self.call("DELETE", f"/api/v1/api-keys/{self.segment(key_id)}")

    def api_keys_rotate(
        self, key_id: str, body: t.RotationRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.NewApiKeyAnswer:
        """Replace the secret. The one before stays valid for `overlap_hours`."""
        answer: t.NewApiKeyAnswer = self.call(
            "POST",
            f"/api/v1/api-keys/{self.segment(key_id)}/rotate",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def artifacts_read(self, artifact_id: str, *, fields: str | None = None) -> t.ArtifactDetailAnswer:
        """One artifact with its content."""
        answer: t.ArtifactDetailAnswer = self.call(
            "GET", f"/api/v1/artifacts/{self.segment(artifact_id)}", query={"fields": fields}
        )
        return answer

    def artifacts_download(self, artifact_id: str, *, fields: str | None = None) -> bytes:
        """One artifact as a file: Markdown, CSV or plain text."""
        answer: bytes = self.read(
            "GET", f"/api/v1/artifacts/{self.segment(artifact_id)}/file", query={"fields": fields}
        )
        return answer

    def audit_list(
        self,
        *,
        actor: str | None = None,
        before: str | None = None,
        event: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        since: str | None = None,
        subject: str | None = None,
        until: str | None = None,
    ) -> t.AuditAnswer:
        """List entries, newest first."""
        answer: t.AuditAnswer = self.call(
            "GET",
            "/api/v1/audit",
            query={
                "actor": actor,
                "before": before,
                "event": event,
                "fields": fields,
                "limit": limit,
                "since": since,
                "subject": subject,
                "until": until,
            },
        )
        return answer

    def audit_get(self, seq: int, *, fields: str | None = None) -> t.EntryDetail:
        """Read an entry with what proves it."""
        answer: t.EntryDetail = self.call("GET", f"/api/v1/audit/{self.segment(seq)}", query={"fields": fields})
        return answer

    def audit_export(self, *, idempotency_key: str | None = None) -> bytes:
        """Export the log as a bundle that anyone can check with `tools/verify_audit.py`, with a fresh checkpoint."""
        answer: bytes = self.read("POST", "/api/v1/audit/export", headers={"Idempotency-Key": idempotency_key})
        return answer

    def audit_verify(self, *, idempotency_key: str | None = None) -> t.VerificationOfLog:
        """Check the whole log from its first entry."""
        answer: t.VerificationOfLog = self.call(
            "POST", "/api/v1/audit/verify", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def autonomous_sessions_list(
        self,
        *,
        fields: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        status: Literal["queued", "running", "awaiting_approval", "completed", "halted", "failed", "cancelled"]
        | None = None,
        task: str | None = None,
    ) -> list[t.SessionAnswer]:
        """All sessions, newest first."""
        answer: list[t.SessionAnswer] = self.call(
            "GET",
            "/api/v1/autonomous-sessions",
            query={"fields": fields, "limit": limit, "offset": offset, "status": status, "task": task},
        )
        return answer

    def autonomous_sessions_read(self, session_id: str, *, fields: str | None = None) -> t.SessionAnswer:
        """One session."""
        answer: t.SessionAnswer = self.call(
            "GET", f"/api/v1/autonomous-sessions/{self.segment(session_id)}", query={"fields": fields}
        )
        return answer

    def artifacts_list(self, session_id: str, *, fields: str | None = None) -> list[t.ArtifactAnswer]:
        """What a run handed over whole: documents, tables and texts, without their content."""
        answer: list[t.ArtifactAnswer] = self.call(
            "GET", f"/api/v1/autonomous-sessions/{self.segment(session_id)}/artifacts", query={"fields": fields}
        )
        return answer

    def autonomous_sessions_halt(self, session_id: str, *, idempotency_key: str | None = None) -> t.HaltAnswer:
        """Ask a session to stop. Answered at once, even during a model call; needs no opt-in, and is safe to
        repeat."""
        answer: t.HaltAnswer = self.call(
            "POST",
            f"/api/v1/autonomous-sessions/{self.segment(session_id)}/halt",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def autonomous_sessions_receipt(self, session_id: str, *, fields: str | None = None) -> dict[str, Any]:
        """The receipt of a session: live while it runs, as stored once it is over."""
        answer: dict[str, Any] = self.call(
            "GET", f"/api/v1/autonomous-sessions/{self.segment(session_id)}/receipt", query={"fields": fields}
        )
        return answer

    def autonomous_sessions_retry(self, session_id: str, *, idempotency_key: str | None = None) -> t.SessionAnswer:
        """Repeat a finished session from the beginning, as a new session."""
        answer: t.SessionAnswer = self.call(
            "POST",
            f"/api/v1/autonomous-sessions/{self.segment(session_id)}/retry",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def availability_list(self, *, fields: str | None = None) -> t.AvailabilitiesAnswer:
        """List the members who may answer, with who takes new conversations."""
        answer: t.AvailabilitiesAnswer = self.call("GET", "/api/v1/availability", query={"fields": fields})
        return answer

    def availability_set(self, member_id: str, body: t.AvailabilityRequest) -> t.AvailabilityAnswer:
        """Say whether a member takes new conversations. Members change their own, owners everybody's."""
        answer: t.AvailabilityAnswer = self.call("PUT", f"/api/v1/availability/{self.segment(member_id)}", body=body)
        return answer

    def budgets_list(
        self, *, fields: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> list[t.BudgetAnswer]:
        """Every limit with what is spent and set aside in its window, and a new or changed one."""
        answer: list[t.BudgetAnswer] = self.call(
            "GET", "/api/v1/budgets", query={"fields": fields, "limit": limit, "offset": offset}
        )
        return answer

    def budgets_set(self, body: t.BudgetRequest, *, idempotency_key: str | None = None) -> t.BudgetAnswer:
        """Every limit with what is spent and set aside in its window, and a new or changed one."""
        answer: t.BudgetAnswer = self.call(
            "POST", "/api/v1/budgets", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def budgets_delete(self, budget_id: str) -> None:
        """Take a limit away; what was spent stays in the ledger."""
        self.call("DELETE", f"/api/v1/budgets/{self.segment(budget_id)}")

    def bundled_skills_list(self, *, fields: str | None = None) -> t.BundledSkillsAnswer:
        """List the skills that the platform brings along and that are not installed."""
        answer: t.BundledSkillsAnswer = self.call("GET", "/api/v1/bundled-skills", query={"fields": fields})
        return answer

    def bundled_skills_install(
        self, body: t.BundledSkillRequest, *, idempotency_key: str | None = None
    ) -> t.SkillAnswer:
        """Install one of them."""
        answer: t.SkillAnswer = self.call(
            "POST", "/api/v1/bundled-skills", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def canned_replies_list(self, *, fields: str | None = None) -> t.CannedRepliesAnswer:
        """List all canned replies by name."""
        answer: t.CannedRepliesAnswer = self.call("GET", "/api/v1/canned-replies", query={"fields": fields})
        return answer

    def canned_replies_create(
        self, body: t.CannedReplyRequest, *, idempotency_key: str | None = None
    ) -> t.CannedReplyAnswer:
        answer: t.CannedReplyAnswer = self.call(
            "POST", "/api/v1/canned-replies", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def canned_replies_get(self, reply_id: str, *, fields: str | None = None) -> t.CannedReplyAnswer:
        answer: t.CannedReplyAnswer = self.call(
            "GET", f"/api/v1/canned-replies/{self.segment(reply_id)}", query={"fields": fields}
        )
        return answer

    def canned_replies_replace(
        self, reply_id: str, body: t.CannedReplyRequest, *, if_match: str | None = None
    ) -> t.CannedReplyAnswer:
        answer: t.CannedReplyAnswer = self.call(
            "PUT", f"/api/v1/canned-replies/{self.segment(reply_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def canned_replies_delete(self, reply_id: str, *, if_match: str | None = None) -> None:
        self.call("DELETE", f"/api/v1/canned-replies/{self.segment(reply_id)}", headers={"If-Match": if_match})

    def card_policy_get(self, *, fields: str | None = None) -> t.CardPolicyAnswer:
        """Read which channels bring cards to approvers."""
        answer: t.CardPolicyAnswer = self.call("GET", "/api/v1/card-policy", query={"fields": fields})
        return answer

    def card_policy_edit(
        self, body: t.PatchedCardPolicyEdit | None = None, *, if_match: str | None = None
    ) -> t.CardPolicyAnswer:
        """Change which channels bring cards to approvers; what is left out stays. Credentials with scopes can't allow
        buttons to decide, nor change where or by whom they decide, or for how long an account stays linked."""
        answer: t.CardPolicyAnswer = self.call(
            "PATCH", "/api/v1/card-policy", headers={"If-Match": if_match}, body=body
        )
        return answer

    def card_timings_get(self, *, fields: str | None = None) -> t.CardTimingsAnswer:
        """Read how long the company's cards wait for a decision."""
        answer: t.CardTimingsAnswer = self.call("GET", "/api/v1/card-timings", query={"fields": fields})
        return answer

    def card_timings_edit(
        self, body: t.PatchedCardTimingsRequest | None = None, *, if_match: str | None = None
    ) -> t.CardTimingsAnswer:
        """Change how long new cards wait; what is left out stays, null uses the installation's time."""
        answer: t.CardTimingsAnswer = self.call(
            "PATCH", "/api/v1/card-timings", headers={"If-Match": if_match}, body=body
        )
        return answer

    def cards_list(
        self,
        *,
        assignee: str | None = None,
        before: str | None = None,
        deployment: str | None = None,
        fields: str | None = None,
        kind: Literal[
            "plan",
            "standing",
            "gate",
            "batch_review",
            "draft_review",
            "decision",
            "suggestion",
            "autonomy_threshold",
            "post_execution",
            "skill_install",
            "budget",
            "connection",
            "permission_escalation",
            "connection_failure",
        ]
        | None = None,
        limit: int | None = None,
        risk: Literal["low", "medium", "high", "irreversible"] | None = None,
        session: str | None = None,
        sort: Literal["newest", "deadline"] | None = None,
        state: Literal["open", "assigned", "decided", "expired", "withdrawn"] | None = None,
        waiting_for_customer: bool | None | None = None,
    ) -> t.CardsAnswer:
        """List cards, newest first or the nearest deadline first."""
        answer: t.CardsAnswer = self.call(
            "GET",
            "/api/v1/cards",
            query={
                "assignee": assignee,
                "before": before,
                "deployment": deployment,
                "fields": fields,
                "kind": kind,
                "limit": limit,
                "risk": risk,
                "session": session,
                "sort": sort,
                "state": state,
                "waiting_for_customer": waiting_for_customer,
            },
        )
        return answer

    def cards_get(self, card_id: str, *, fields: str | None = None) -> t.CardDetail:
        """Read a card with what an approval of it binds, who has to approve it, and the answers."""
        answer: t.CardDetail = self.call("GET", f"/api/v1/cards/{self.segment(card_id)}", query={"fields": fields})
        return answer

    def cards_assign(self, card_id: str, body: t.AssigneeRequest) -> t.CardDetail:
        """Assign a card to a member, or remove the assignment. Everyone else who may decide it still can."""
        answer: t.CardDetail = self.call("PUT", f"/api/v1/cards/{self.segment(card_id)}/assignee", body=body)
        return answer

    def cards_decide(
        self, card_id: str, body: t.DecisionRequest, *, idempotency_key: str | None = None
    ) -> t.DecisionOutcome:
        """Answer a card with a program's signature of exactly this answer. The same request again changes nothing."""
        answer: t.DecisionOutcome = self.call(
            "POST",
            f"/api/v1/cards/{self.segment(card_id)}/decision",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def cards_link(
        self, card_id: str, body: t.NewDecisionLinkRequest, *, idempotency_key: str | None = None
    ) -> t.DecisionLinkAnswer:
        """Create a link with which one member decides the card, once and with their passkey. Send it to them
        alone."""
        answer: t.DecisionLinkAnswer = self.call(
            "POST",
            f"/api/v1/cards/{self.segment(card_id)}/decision-links",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def cards_edit(self, card_id: str, body: t.CardEditRequest, *, idempotency_key: str | None = None) -> t.CardDetail:
        """Change the values of a planned task's calls before it is approved; returns the card that takes the old
        one's place and has to be approved. A program signs this as its answer `edit_requested`."""
        answer: t.CardDetail = self.call(
            "POST",
            f"/api/v1/cards/{self.segment(card_id)}/edit",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def cards_interrupt(self, card_id: str, *, fields: str | None = None) -> t.InterruptAnswer:
        """Read a card as an Agent Inbox interrupt."""
        answer: t.InterruptAnswer = self.call(
            "GET", f"/api/v1/cards/{self.segment(card_id)}/interrupt", query={"fields": fields}
        )
        return answer

    def cards_interrupt_respond(
        self, card_id: str, body: t.InterruptResponseRequest, *, idempotency_key: str | None = None
    ) -> t.InterruptOutcome:
        """Answer a card with an Agent Inbox response, signed as a decision is. `ignore` takes no signature."""
        answer: t.InterruptOutcome = self.call(
            "POST",
            f"/api/v1/cards/{self.segment(card_id)}/interrupt-response",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def cards_ask(
        self, card_id: str, body: t.CardQuestionRequest, *, idempotency_key: str | None = None
    ) -> t.CardDetail:
        """Ask the customer something in the card's conversation. The card waits for the answer outside of the queue,
        and its deadline moves by as much. A program needs the scope `sessions:write` as well."""
        answer: t.CardDetail = self.call(
            "POST",
            f"/api/v1/cards/{self.segment(card_id)}/question",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def cards_take_back(
        self, card_id: str, body: t.TakeBackRequest, *, idempotency_key: str | None = None
    ) -> t.CardDetail:
        """Revoke the approval of a decided card, on the behalf of the member who registered the program's key. What
        has not begun does not begin."""
        answer: t.CardDetail = self.call(
            "POST",
            f"/api/v1/cards/{self.segment(card_id)}/take-back",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def channel_kinds_list(self, *, fields: str | None = None) -> t.ChannelKindsAnswer:
        """List what kinds of channels there are, and the settings of each."""
        answer: t.ChannelKindsAnswer = self.call("GET", "/api/v1/channel-kinds", query={"fields": fields})
        return answer

    def channels_list(self, *, fields: str | None = None) -> t.ChannelsAnswer:
        """List the channels, oldest first."""
        answer: t.ChannelsAnswer = self.call("GET", "/api/v1/channels", query={"fields": fields})
        return answer

    def channels_create(self, body: t.ChannelRequest, *, idempotency_key: str | None = None) -> t.ChannelAnswer:
        """Add a channel. Check it afterwards: that tells the provider where to deliver messages."""
        answer: t.ChannelAnswer = self.call(
            "POST", "/api/v1/channels", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def channels_get(self, channel_id: str, *, fields: str | None = None) -> t.ChannelAnswer:
        answer: t.ChannelAnswer = self.call(
            "GET", f"/api/v1/channels/{self.segment(channel_id)}", query={"fields": fields}
        )
        return answer

    def channels_edit(
        self, channel_id: str, body: t.PatchedChannelEdit | None = None, *, if_match: str | None = None
    ) -> t.ChannelAnswer:
        """Change a channel; what is left out stays, secrets included."""
        answer: t.ChannelAnswer = self.call(
            "PATCH", f"/api/v1/channels/{self.segment(channel_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def channels_delete(self, channel_id: str) -> None:
        """Remove a channel and its secrets; its conversations stay."""
        self.call("DELETE", f"/api/v1/channels/{self.segment(channel_id)}")

    def channels_check(self, channel_id: str, *, idempotency_key: str | None = None) -> t.ChannelAnswer:
        """Check the credentials at the provider, and tell it where to deliver messages."""
        answer: t.ChannelAnswer = self.call(
            "POST", f"/api/v1/channels/{self.segment(channel_id)}/check", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def channel_messages_list(
        self, channel_id: str, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.ChannelMessagesAnswer:
        """List what came and went over a channel, newest first."""
        answer: t.ChannelMessagesAnswer = self.call(
            "GET",
            f"/api/v1/channels/{self.segment(channel_id)}/messages",
            query={"before": before, "fields": fields, "limit": limit},
        )
        return answer

    def channels_test(self, channel_id: str, body: t.ChannelTestRequest, *, idempotency_key: str | None = None) -> None:
        """Send a short message to an address."""
        self.call(
            "POST",
            f"/api/v1/channels/{self.segment(channel_id)}/test",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )

    def client_keys_list(self, *, fields: str | None = None) -> t.ClientKeysAnswer:
        """List the keys with which programs decide cards, the oldest first, with revoked ones."""
        answer: t.ClientKeysAnswer = self.call("GET", "/api/v1/client-keys", query={"fields": fields})
        return answer

    def client_keys_register(
        self, body: t.NewClientKeyRequest, *, idempotency_key: str | None = None
    ) -> t.ClientKeyAnswer:
        """Let a program decide on your behalf. For a member who is logged in: a program cannot give itself this."""
        answer: t.ClientKeyAnswer = self.call(
            "POST", "/api/v1/client-keys", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def client_keys_revoke(self, key_id: str) -> None:
        """Let this key decide nothing any more."""
        self.call("DELETE", f"/api/v1/client-keys/{self.segment(key_id)}")

    def company_get(self, *, fields: str | None = None) -> t.CompanyAnswer:
        """Read the company's name and time zone."""
        answer: t.CompanyAnswer = self.call("GET", "/api/v1/company", query={"fields": fields})
        return answer

    def company_edit(
        self, body: t.PatchedCompanyRequest | None = None, *, if_match: str | None = None
    ) -> t.CompanyAnswer:
        """Change the company's name and time zone; what is left out stays."""
        answer: t.CompanyAnswer = self.call("PATCH", "/api/v1/company", headers={"If-Match": if_match}, body=body)
        return answer

    def connections_list(
        self,
        *,
        domain: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[t.ConnectionAnswer]:
        """List connections, and request a new one: a card is opened for a person to approve."""
        answer: list[t.ConnectionAnswer] = self.call(
            "GET", "/api/v1/connections", query={"domain": domain, "fields": fields, "limit": limit, "offset": offset}
        )
        return answer

    def connections_create(
        self, body: t.ConnectionRequest, *, idempotency_key: str | None = None
    ) -> t.ConnectionAnswer:
        """List connections, and request a new one: a card is opened for a person to approve."""
        answer: t.ConnectionAnswer = self.call(
            "POST", "/api/v1/connections", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def connection(self, connection_id: str, *, fields: str | None = None) -> t.ConnectionAnswer:
        """Get a connection, or remove it and its credentials."""
        answer: t.ConnectionAnswer = self.call(
            "GET", f"/api/v1/connections/{self.segment(connection_id)}", query={"fields": fields}
        )
        return answer

    def connection_remove(self, connection_id: str) -> None:
        """Get a connection, or remove it and its credentials."""
        self.call("DELETE", f"/api/v1/connections/{self.segment(connection_id)}")

    def connection_choose(self, connection_id: str, *, idempotency_key: str | None = None) -> t.ConnectionAnswer:
        """Make tools use this one of several accounts of its skill."""
        answer: t.ConnectionAnswer = self.call(
            "POST",
            f"/api/v1/connections/{self.segment(connection_id)}/choose",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def connection_pause(self, connection_id: str, *, idempotency_key: str | None = None) -> t.ConnectionAnswer:
        """Pause a connection: no tool uses it until it is resumed."""
        answer: t.ConnectionAnswer = self.call(
            "POST",
            f"/api/v1/connections/{self.segment(connection_id)}/pause",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def connection_reconnect(
        self, connection_id: str, body: t.ReconnectRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.SetupAnswerShape:
        """Sign in again, with the approved permissions or fewer."""
        answer: t.SetupAnswerShape = self.call(
            "POST",
            f"/api/v1/connections/{self.segment(connection_id)}/reconnect",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def connection_resume(self, connection_id: str, *, idempotency_key: str | None = None) -> t.ConnectionAnswer:
        """Resume a connection: it is used and checked again."""
        answer: t.ConnectionAnswer = self.call(
            "POST",
            f"/api/v1/connections/{self.segment(connection_id)}/resume",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def connection_setup(self, connection_id: str, *, fields: str | None = None) -> t.SetupAnswerShape:
        """Get the step that a set-up shows, answer it, or cancel the set-up."""
        answer: t.SetupAnswerShape = self.call(
            "GET", f"/api/v1/connections/{self.segment(connection_id)}/setup", query={"fields": fields}
        )
        return answer

    def connection_setup_answer(
        self, connection_id: str, body: t.StepRequest, *, idempotency_key: str | None = None
    ) -> t.SetupAnswerShape:
        """Get the step that a set-up shows, answer it, or cancel the set-up."""
        answer: t.SetupAnswerShape = self.call(
            "POST",
            f"/api/v1/connections/{self.segment(connection_id)}/setup",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def connection_setup_cancel(self, connection_id: str) -> t.SetupAnswerShape:
        """Get the step that a set-up shows, answer it, or cancel the set-up."""
        answer: t.SetupAnswerShape = self.call("DELETE", f"/api/v1/connections/{self.segment(connection_id)}/setup")
        return answer

    def connection_widen(
        self, connection_id: str, body: t.WidenRequest, *, idempotency_key: str | None = None
    ) -> t.WidenAnswer:
        """Ask for more permissions: a card opens, and who approves it signs in again."""
        answer: t.WidenAnswer = self.call(
            "POST",
            f"/api/v1/connections/{self.segment(connection_id)}/widen",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def contacts_list(
        self,
        *,
        before: str | None = None,
        customer: str | None = None,
        email: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        search: str | None = None,
        seen_since: str | None = None,
        source: Literal["chat", "team", "api", "import", None] | None = None,
        verified: bool | None | None = None,
    ) -> t.ContactsAnswer:
        """List contacts, the last seen first."""
        answer: t.ContactsAnswer = self.call(
            "GET",
            "/api/v1/contacts",
            query={
                "before": before,
                "customer": customer,
                "email": email,
                "fields": fields,
                "limit": limit,
                "search": search,
                "seen_since": seen_since,
                "source": source,
                "verified": verified,
            },
        )
        return answer

    def contacts_create(
        self, body: t.ContactEdit | None = None, *, idempotency_key: str | None = None
    ) -> t.OneContactAnswer:
        answer: t.OneContactAnswer = self.call(
            "POST", "/api/v1/contacts", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def contacts_get(self, contact_id: str, *, fields: str | None = None) -> t.OneContactAnswer:
        """Read a contact; one that was merged is answered with the contact it is shown as."""
        answer: t.OneContactAnswer = self.call(
            "GET", f"/api/v1/contacts/{self.segment(contact_id)}", query={"fields": fields}
        )
        return answer

    def contacts_edit(
        self, contact_id: str, body: t.PatchedContactEdit | None = None, *, if_match: str | None = None
    ) -> t.OneContactAnswer:
        """Change what is named: all of it or nothing."""
        answer: t.OneContactAnswer = self.call(
            "PATCH", f"/api/v1/contacts/{self.segment(contact_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def contact_consents_list(self, contact_id: str, *, fields: str | None = None) -> t.ContactConsentsAnswer:
        """List which consents were given in the contact's conversations, newest first."""
        answer: t.ContactConsentsAnswer = self.call(
            "GET", f"/api/v1/contacts/{self.segment(contact_id)}/consents", query={"fields": fields}
        )
        return answer

    def contacts_erase(self, contact_id: str, *, idempotency_key: str | None = None) -> t.ErasureAnswer:
        """Erase everything about a person, for good. For owners; not with an API key. Sent twice, it is one
        erasure."""
        answer: t.ErasureAnswer = self.call(
            "POST", f"/api/v1/contacts/{self.segment(contact_id)}/erase", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def contacts_export(self, contact_id: str, *, idempotency_key: str | None = None) -> bytes:
        """Export everything stored about a person as a ZIP, to hand to them. For owners; not with an API key."""
        answer: bytes = self.read(
            "POST", f"/api/v1/contacts/{self.segment(contact_id)}/export", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def contacts_forget(self, contact_id: str, *, idempotency_key: str | None = None) -> t.ForgottenAnswer:
        """Begin the same erasure as `contacts_erase`, which names it and leads to the receipt."""
        answer: t.ForgottenAnswer = self.call(
            "POST", f"/api/v1/contacts/{self.segment(contact_id)}/forget", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def contact_history_list(self, contact_id: str, *, fields: str | None = None) -> t.ImportedSessionsAnswer:
        """List imported conversations of the contact, newest first. No model reads them."""
        answer: t.ImportedSessionsAnswer = self.call(
            "GET", f"/api/v1/contacts/{self.segment(contact_id)}/history", query={"fields": fields}
        )
        return answer

    def contact_memories_list(
        self, contact_id: str, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.MemoriesAnswer:
        """List what is recalled about the contact's customer ids, newest first."""
        answer: t.MemoriesAnswer = self.call(
            "GET",
            f"/api/v1/contacts/{self.segment(contact_id)}/memories",
            query={"before": before, "fields": fields, "limit": limit},
        )
        return answer

    def contacts_merge(
        self, contact_id: str, body: t.MergeRequest, *, idempotency_key: str | None = None
    ) -> t.OneContactAnswer:
        """Merge another contact into this one. No access level, approval or memory of either becomes the other's."""
        answer: t.OneContactAnswer = self.call(
            "POST",
            f"/api/v1/contacts/{self.segment(contact_id)}/merge",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def contact_notes_list(self, contact_id: str, *, fields: str | None = None) -> t.ContactNotesAnswer:
        """List private notes, newest first."""
        answer: t.ContactNotesAnswer = self.call(
            "GET", f"/api/v1/contacts/{self.segment(contact_id)}/notes", query={"fields": fields}
        )
        return answer

    def contact_notes_create(
        self, contact_id: str, body: t.ContactNoteRequest, *, idempotency_key: str | None = None
    ) -> t.ContactNoteAnswer:
        """Write a note for the team; no visitor and no model reads it."""
        answer: t.ContactNoteAnswer = self.call(
            "POST",
            f"/api/v1/contacts/{self.segment(contact_id)}/notes",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def contact_sessions_list(
        self, contact_id: str, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.ContactSessionsAnswer:
        """List the conversations in which the contact was verified, the last active first."""
        answer: t.ContactSessionsAnswer = self.call(
            "GET",
            f"/api/v1/contacts/{self.segment(contact_id)}/sessions",
            query={"before": before, "fields": fields, "limit": limit},
        )
        return answer

    def contacts_unmerge(
        self, contact_id: str, body: t.UnmergeRequest, *, idempotency_key: str | None = None
    ) -> t.OneContactAnswer:
        """Undo a merge within 30 days. The answer is the contact that is back."""
        answer: t.OneContactAnswer = self.call(
            "POST",
            f"/api/v1/contacts/{self.segment(contact_id)}/unmerge",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def dead_letters_list(
        self,
        *,
        before: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        queue: Literal["proxy", "planner", "executor", "runtime", "trusted", "work", "parse", "upkeep", "simulation"]
        | None = None,
    ) -> t.DeadLettersAnswer:
        """List messages that failed for good, newest first."""
        answer: t.DeadLettersAnswer = self.call(
            "GET", "/api/v1/dead-letters", query={"before": before, "fields": fields, "limit": limit, "queue": queue}
        )
        return answer

    def dead_letters_drop(self, message_id: str, *, idempotency_key: str | None = None) -> None:
        """Close the message without its effect."""
        self.call(
            "POST",
            f"/api/v1/dead-letters/{self.segment(message_id)}/drop",
            headers={"Idempotency-Key": idempotency_key},
        )

    def dead_letters_retry(self, message_id: str, *, idempotency_key: str | None = None) -> None:
        """Deliver the message again. An effect that it already had is not repeated."""
        self.call(
            "POST",
            f"/api/v1/dead-letters/{self.segment(message_id)}/retry",
            headers={"Idempotency-Key": idempotency_key},
        )

    def deployments_list(
        self, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.DeploymentsAnswer:
        """List deployments, newest first."""
        answer: t.DeploymentsAnswer = self.call(
            "GET", "/api/v1/deployments", query={"before": before, "fields": fields, "limit": limit}
        )
        return answer

    def deployments_create(
        self, body: t.NewDeploymentRequest, *, idempotency_key: str | None = None
    ) -> t.DeploymentDetail:
        """Create a chatbot, with the settings of another one if wanted."""
        answer: t.DeploymentDetail = self.call(
            "POST", "/api/v1/deployments", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def deployments_get(self, deployment_id: str, *, fields: str | None = None) -> t.DeploymentDetail:
        """Read a deployment's settings as saved, with their ETag; conversations read its release, if there is one."""
        answer: t.DeploymentDetail = self.call(
            "GET", f"/api/v1/deployments/{self.segment(deployment_id)}", query={"fields": fields}
        )
        return answer

    def deployments_change(
        self, deployment_id: str, body: t.PatchedDeploymentEdit | None = None, *, if_match: str | None = None
    ) -> t.DeploymentDetail:
        """Change what you name: all of it, or nothing."""
        answer: t.DeploymentDetail = self.call(
            "PATCH", f"/api/v1/deployments/{self.segment(deployment_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def deployment_avatar_set(self, deployment_id: str, body: dict[str, Any]) -> t.DeploymentDetail:
        """Store the avatar beside the chatbot's messages, in place of an older one. Every visitor sees it at once."""
        answer: t.DeploymentDetail = self.call(
            "PUT", f"/api/v1/deployments/{self.segment(deployment_id)}/avatar", form=body
        )
        return answer

    def deployment_avatar_remove(self, deployment_id: str) -> None:
        self.call("DELETE", f"/api/v1/deployments/{self.segment(deployment_id)}/avatar")

    def deployment_card_timings_get(self, deployment_id: str, *, fields: str | None = None) -> t.CardTimingsAnswer:
        """Read how long the cards of one chatbot wait for a decision."""
        answer: t.CardTimingsAnswer = self.call(
            "GET", f"/api/v1/deployments/{self.segment(deployment_id)}/card-timings", query={"fields": fields}
        )
        return answer

    def deployment_card_timings_edit(
        self, deployment_id: str, body: t.PatchedCardTimingsRequest | None = None, *, if_match: str | None = None
    ) -> t.CardTimingsAnswer:
        """Change how long new cards of this chatbot wait; what is left out stays, null uses the company's time."""
        answer: t.CardTimingsAnswer = self.call(
            "PATCH",
            f"/api/v1/deployments/{self.segment(deployment_id)}/card-timings",
            headers={"If-Match": if_match},
            body=body,
        )
        return answer

    def styles_compare(
        self, deployment_id: str, body: t.ComparisonRequest, *, idempotency_key: str | None = None
    ) -> t.ComparisonAnswer:
        """Answer a question in the saved style and in the given one, at the chatbot's expense."""
        answer: t.ComparisonAnswer = self.call(
            "POST",
            f"/api/v1/deployments/{self.segment(deployment_id)}/compare-styles",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def deployments_install(self, deployment_id: str, *, fields: str | None = None) -> t.InstallAnswer:
        """The code with which a website shows the chat."""
        answer: t.InstallAnswer = self.call(
            "GET", f"/api/v1/deployments/{self.segment(deployment_id)}/install", query={"fields": fields}
        )
        return answer

    def deployment_logo_set(self, deployment_id: str, body: dict[str, Any]) -> t.DeploymentDetail:
        """Store the logo in the widget's header, in place of an older one. Every visitor sees it at once."""
        answer: t.DeploymentDetail = self.call(
            "PUT", f"/api/v1/deployments/{self.segment(deployment_id)}/logo", form=body
        )
        return answer

    def deployment_logo_remove(self, deployment_id: str) -> None:
        self.call("DELETE", f"/api/v1/deployments/{self.segment(deployment_id)}/logo")

    def preferences_list(self, deployment_id: str, *, fields: str | None = None) -> t.PreferencesAnswer:
        """List the preferences that count now or wait for a decision, newest first. One is kept by its card."""
        answer: t.PreferencesAnswer = self.call(
            "GET", f"/api/v1/deployments/{self.segment(deployment_id)}/preferences", query={"fields": fields}
        )
        return answer

    def preferences_dismiss(self, deployment_id: str, preference_id: str) -> None:
        """Dismiss a preference or turn it off: the chatbot forgets it at once."""
        self.call(
            "DELETE", f"/api/v1/deployments/{self.segment(deployment_id)}/preferences/{self.segment(preference_id)}"
        )

    def proactive_messages_list(self, deployment_id: str, *, fields: str | None = None) -> t.ProactiveMessagesAnswer:
        """List a chatbot's proactive messages."""
        answer: t.ProactiveMessagesAnswer = self.call(
            "GET", f"/api/v1/deployments/{self.segment(deployment_id)}/proactive-messages", query={"fields": fields}
        )
        return answer

    def proactive_messages_create(
        self, deployment_id: str, body: t.ProactiveMessageRequest, *, idempotency_key: str | None = None
    ) -> t.ProactiveMessageAnswer:
        """Create a proactive message; it is off unless `is_active` is true."""
        answer: t.ProactiveMessageAnswer = self.call(
            "POST",
            f"/api/v1/deployments/{self.segment(deployment_id)}/proactive-messages",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def proactive_messages_get(
        self, deployment_id: str, message_id: str, *, fields: str | None = None
    ) -> t.ProactiveMessageAnswer:
        answer: t.ProactiveMessageAnswer = self.call(
            "GET",
            f"/api/v1/deployments/{self.segment(deployment_id)}/proactive-messages/{self.segment(message_id)}",
            query={"fields": fields},
        )
        return answer

    def proactive_messages_edit(
        self,
        deployment_id: str,
        message_id: str,
        body: t.PatchedProactiveMessageChange | None = None,
        *,
        if_match: str | None = None,
    ) -> t.ProactiveMessageAnswer:
        """Change the named fields, such as `is_active`."""
        answer: t.ProactiveMessageAnswer = self.call(
            "PATCH",
            f"/api/v1/deployments/{self.segment(deployment_id)}/proactive-messages/{self.segment(message_id)}",
            headers={"If-Match": if_match},
            body=body,
        )
        return answer

    def proactive_messages_delete(self, deployment_id: str, message_id: str, *, if_match: str | None = None) -> None:
        self.call(
            "DELETE",
            f"/api/v1/deployments/{self.segment(deployment_id)}/proactive-messages/{self.segment(message_id)}",
            headers={"If-Match": if_match},
        )

    def provider_keys_set(self, deployment_id: str, body: t.ProviderKeyRequest) -> t.DeploymentDetail:
        """Store a provider's key, in place of an older one, after a small request with it has been answered."""
        answer: t.DeploymentDetail = self.call(
            "PUT", f"/api/v1/deployments/{self.segment(deployment_id)}/provider-keys", body=body
        )
        return answer

    def provider_keys_remove(self, deployment_id: str, provider: str) -> None:
        self.call("DELETE", f"/api/v1/deployments/{self.segment(deployment_id)}/provider-keys/{self.segment(provider)}")

    def releases_list(self, deployment_id: str, *, fields: str | None = None) -> t.ReleaseList:
        """Releases of a deployment, newest first; publish the working copy as the next one."""
        answer: t.ReleaseList = self.call(
            "GET", f"/api/v1/deployments/{self.segment(deployment_id)}/releases", query={"fields": fields}
        )
        return answer

    def releases_publish(
        self, deployment_id: str, body: t.ReleasePublishRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.ReleaseAnswer:
        """Releases of a deployment, newest first; publish the working copy as the next one."""
        answer: t.ReleaseAnswer = self.call(
            "POST",
            f"/api/v1/deployments/{self.segment(deployment_id)}/releases",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def releases_read(self, deployment_id: str, number: int, *, fields: str | None = None) -> t.ReleaseDetail:
        """A release with its snapshot."""
        answer: t.ReleaseDetail = self.call(
            "GET",
            f"/api/v1/deployments/{self.segment(deployment_id)}/releases/{self.segment(number)}",
            query={"fields": fields},
        )
        return answer

    def releases_diff(
        self, deployment_id: str, number: int, *, fields: str | None = None, with_: int | None = None
    ) -> t.ReleaseDiffAnswer:
        """How a release differs from another one, or from the working copy."""
        answer: t.ReleaseDiffAnswer = self.call(
            "GET",
            f"/api/v1/deployments/{self.segment(deployment_id)}/releases/{self.segment(number)}/diff",
            query={"fields": fields, "with": with_},
        )
        return answer

    def releases_roll_back(
        self, deployment_id: str, number: int, body: t.ReleaseRollBackRequest, *, idempotency_key: str | None = None
    ) -> t.ReleaseAnswer:
        """Publish the settings of this release again, for all conversations."""
        answer: t.ReleaseAnswer = self.call(
            "POST",
            f"/api/v1/deployments/{self.segment(deployment_id)}/releases/{self.segment(number)}/roll-back",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def releases_share(
        self, deployment_id: str, number: int, body: t.ReleaseShareRequest, *, idempotency_key: str | None = None
    ) -> t.ReleaseAnswer:
        """Change the share of a live release; the other live one gets the rest."""
        answer: t.ReleaseAnswer = self.call(
            "POST",
            f"/api/v1/deployments/{self.segment(deployment_id)}/releases/{self.segment(number)}/share",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def erasures_list(self, *, fields: str | None = None) -> t.ErasuresAnswer:
        """List erasures of personal data, newest first."""
        answer: t.ErasuresAnswer = self.call("GET", "/api/v1/erasures", query={"fields": fields})
        return answer

    def erasures_get(self, erasure_id: str, *, fields: str | None = None) -> t.ErasureAnswer:
        answer: t.ErasureAnswer = self.call(
            "GET", f"/api/v1/erasures/{self.segment(erasure_id)}", query={"fields": fields}
        )
        return answer

    def erasures_receipt(self, erasure_id: str, *, fields: str | None = None) -> t.SignedReceipt:
        """What was erased, and what was kept and why, signed; `tools/verify_audit.py` checks it."""
        answer: t.SignedReceipt = self.call(
            "GET", f"/api/v1/erasures/{self.segment(erasure_id)}/receipt", query={"fields": fields}
        )
        return answer

    def event_types(self) -> t.EventTypesAnswer:
        """List the types of events, for streams and webhooks."""
        answer: t.EventTypesAnswer = self.call("GET", "/api/v1/event-types")
        return answer

    def events_stream(
        self,
        *,
        after: int | None = None,
        deployment: str | None = None,
        format: Literal["events", "json"] | None = None,
        session: str | None = None,
        types: str | None = None,
        last_event_id: int | None = None,
    ) -> bytes:
        """Receive events as they happen, as server-sent events; resume by `Last-Event-ID` without loss."""
        answer: bytes = self.read(
            "GET",
            "/api/v1/events",
            query={"after": after, "deployment": deployment, "format": format, "session": session, "types": types},
            headers={"Last-Event-ID": last_event_id},
        )
        return answer

    def findings_list(
        self,
        *,
        fields: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        state: Literal["open", "resolved", "gone"] | None = None,
        task: str | None = None,
    ) -> list[t.FindingAnswer]:
        """Findings of all automations, newest first; `state` is open, resolved or gone."""
        answer: list[t.FindingAnswer] = self.call(
            "GET",
            "/api/v1/findings",
            query={"fields": fields, "limit": limit, "offset": offset, "state": state, "task": task},
        )
        return answer

    def findings_read(self, finding_id: str, *, fields: str | None = None) -> t.FindingAnswer:
        """One finding."""
        answer: t.FindingAnswer = self.call(
            "GET", f"/api/v1/findings/{self.segment(finding_id)}", query={"fields": fields}
        )
        return answer

    def findings_resolve(self, finding_id: str, *, idempotency_key: str | None = None) -> t.FindingAnswer:
        """Say that a finding was dealt with; its task does not report it again while it lasts. Safe to repeat."""
        answer: t.FindingAnswer = self.call(
            "POST", f"/api/v1/findings/{self.segment(finding_id)}/resolve", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def gates_list(self, *, fields: str | None = None) -> list[t.GateAnswer]:
        """All gates of the tenant, and new ones, which begin as drafts."""
        answer: list[t.GateAnswer] = self.call("GET", "/api/v1/gates", query={"fields": fields})
        return answer

    def gates_create(self, body: t.GateRequest, *, idempotency_key: str | None = None) -> t.GateWithVersions:
        """All gates of the tenant, and new ones, which begin as drafts."""
        answer: t.GateWithVersions = self.call(
            "POST", "/api/v1/gates", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def gates_read(self, gate_id: str, *, fields: str | None = None) -> t.GateWithVersions:
        """One gate with all its versions, newest first."""
        answer: t.GateWithVersions = self.call(
            "GET", f"/api/v1/gates/{self.segment(gate_id)}", query={"fields": fields}
        )
        return answer

    def gates_activate(self, gate_id: str, body: t.MoveRequest, *, idempotency_key: str | None = None) -> t.GateAnswer:
        """Bring one version into force, from the next turn on."""
        answer: t.GateAnswer = self.call(
            "POST",
            f"/api/v1/gates/{self.segment(gate_id)}/activate",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def gates_diff(
        self, gate_id: str, *, after: int, before: int, fields: str | None = None
    ) -> list[t.DifferenceAnswer]:
        """What two versions of a gate say differently, field by field."""
        answer: list[t.DifferenceAnswer] = self.call(
            "GET",
            f"/api/v1/gates/{self.segment(gate_id)}/diff",
            query={"after": after, "before": before, "fields": fields},
        )
        return answer

    def gates_dry_run(
        self, gate_id: str, body: t.DryRunRequest, *, idempotency_key: str | None = None
    ) -> t.DryRunAnswer:
        """Try a version on the newest recorded messages of a deployment; answers with ids and outcomes, no texts."""
        answer: t.DryRunAnswer = self.call(
            "POST",
            f"/api/v1/gates/{self.segment(gate_id)}/dry-run",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def gates_retire(self, gate_id: str, *, idempotency_key: str | None = None) -> t.GateAnswer:
        """Take a gate out of force, from the next turn on; its versions stay."""
        answer: t.GateAnswer = self.call(
            "POST", f"/api/v1/gates/{self.segment(gate_id)}/retire", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def gates_roll_back(self, gate_id: str, body: t.MoveRequest, *, idempotency_key: str | None = None) -> t.GateAnswer:
        """Bring the content of an earlier version back into force, as a new version."""
        answer: t.GateAnswer = self.call(
            "POST",
            f"/api/v1/gates/{self.segment(gate_id)}/roll-back",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def gates_write_version(
        self, gate_id: str, body: t.VersionRequest, *, idempotency_key: str | None = None
    ) -> t.VersionAnswer:
        """Another version of a gate; nothing of it is in force yet."""
        answer: t.VersionAnswer = self.call(
            "POST",
            f"/api/v1/gates/{self.segment(gate_id)}/versions",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def imported_sessions_get(self, conversation_id: str, *, fields: str | None = None) -> t.ImportedSessionAnswer:
        """Read an imported conversation. What it says is untrusted."""
        answer: t.ImportedSessionAnswer = self.call(
            "GET", f"/api/v1/imported-sessions/{self.segment(conversation_id)}", query={"fields": fields}
        )
        return answer

    def imports_list(self, *, fields: str | None = None) -> t.ContactImportsAnswer:
        """List the newest 20 imports."""
        answer: t.ContactImportsAnswer = self.call("GET", "/api/v1/imports", query={"fields": fields})
        return answer

    def imports_create(self, body: dict[str, Any], *, idempotency_key: str | None = None) -> t.ContactImportAnswer:
        """Hand over a file; it is imported in the background. A dry run unless `dry_run` is false."""
        answer: t.ContactImportAnswer = self.call(
            "POST", "/api/v1/imports", headers={"Idempotency-Key": idempotency_key}, form=body
        )
        return answer

    def imports_get(self, run_id: str, *, fields: str | None = None) -> t.ContactImportAnswer:
        """Read the report of an import."""
        answer: t.ContactImportAnswer = self.call(
            "GET", f"/api/v1/imports/{self.segment(run_id)}", query={"fields": fields}
        )
        return answer

    def inbox_rules_list(self, *, fields: str | None = None) -> t.InboxRulesAnswer:
        """List all inbox rules in the order in which they run."""
        answer: t.InboxRulesAnswer = self.call("GET", "/api/v1/inbox-rules", query={"fields": fields})
        return answer

    def inbox_rules_create(self, body: t.InboxRuleRequest, *, idempotency_key: str | None = None) -> t.InboxRuleAnswer:
        """Create an inbox rule; it is off unless `is_active` is true."""
        answer: t.InboxRuleAnswer = self.call(
            "POST", "/api/v1/inbox-rules", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def inbox_rules_get(self, rule_id: str, *, fields: str | None = None) -> t.InboxRuleAnswer:
        answer: t.InboxRuleAnswer = self.call(
            "GET", f"/api/v1/inbox-rules/{self.segment(rule_id)}", query={"fields": fields}
        )
        return answer

    def inbox_rules_edit(
        self, rule_id: str, body: t.PatchedInboxRuleChange | None = None, *, if_match: str | None = None
    ) -> t.InboxRuleAnswer:
        """Change the named fields of a rule, such as `is_active`."""
        answer: t.InboxRuleAnswer = self.call(
            "PATCH", f"/api/v1/inbox-rules/{self.segment(rule_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def inbox_rules_delete(self, rule_id: str, *, if_match: str | None = None) -> None:
        self.call("DELETE", f"/api/v1/inbox-rules/{self.segment(rule_id)}", headers={"If-Match": if_match})

    def insights_get(
        self,
        *,
        deployment: str | None = None,
        fields: str | None = None,
        first: str | None = None,
        last: str | None = None,
    ) -> t.InsightsAnswer:
        """Figures about conversations and decisions of a period."""
        answer: t.InsightsAnswer = self.call(
            "GET", "/api/v1/insights", query={"deployment": deployment, "fields": fields, "first": first, "last": last}
        )
        return answer

    def invitations_list(self, *, fields: str | None = None) -> t.InvitationsAnswer:
        """List open invitations, with those that have expired."""
        answer: t.InvitationsAnswer = self.call("GET", "/api/v1/invitations", query={"fields": fields})
        return answer

    def invitations_create(self, body: t.InvitationRequest, *, idempotency_key: str | None = None) -> t.SentInvitation:
        """Invite someone by email. An open invitation for the same address ends."""
        answer: t.SentInvitation = self.call(
            "POST", "/api/v1/invitations", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def invitations_revoke(self, invitation_id: str) -> None:
        """Revoke an open invitation; its link opens nothing any more."""
        self.call("DELETE", f"/api/v1/invitations/{self.segment(invitation_id)}")

    def invitations_resend(self, invitation_id: str, *, idempotency_key: str | None = None) -> t.SentInvitation:
        """Send an open invitation again, for seven days; the link before ends."""
        answer: t.SentInvitation = self.call(
            "POST",
            f"/api/v1/invitations/{self.segment(invitation_id)}/resend",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def collections_list(
        self, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.CollectionsAnswer:
        """List collections, newest first."""
        answer: t.CollectionsAnswer = self.call(
            "GET", "/api/v1/knowledge/collections", query={"before": before, "fields": fields, "limit": limit}
        )
        return answer

    def collections_create(
        self, body: t.CollectionRequest, *, idempotency_key: str | None = None
    ) -> t.CollectionAnswer:
        """Create a collection; the one that has the name already is answered as it is."""
        answer: t.CollectionAnswer = self.call(
            "POST", "/api/v1/knowledge/collections", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def collections_get(self, collection_id: str, *, fields: str | None = None) -> t.CollectionAnswer:
        answer: t.CollectionAnswer = self.call(
            "GET", f"/api/v1/knowledge/collections/{self.segment(collection_id)}", query={"fields": fields}
        )
        return answer

    def documents_list(
        self, collection_id: str, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.DocumentsAnswer:
        """List a collection's documents, the last changed first."""
        answer: t.DocumentsAnswer = self.call(
            "GET",
            f"/api/v1/knowledge/collections/{self.segment(collection_id)}/documents",
            query={"before": before, "fields": fields, "limit": limit},
        )
        return answer

    def submissions_list(
        self, collection_id: str, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.SubmissionsAnswer:
        """List what was handed in to a collection and what became of it, newest first."""
        answer: t.SubmissionsAnswer = self.call(
            "GET",
            f"/api/v1/knowledge/collections/{self.segment(collection_id)}/submissions",
            query={"before": before, "fields": fields, "limit": limit},
        )
        return answer

    def submissions_create(
        self, collection_id: str, body: t.SubmissionRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.SubmissionAnswer:
        """Hand in a text, a website or a file. It is read in the background."""
        answer: t.SubmissionAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/collections/{self.segment(collection_id)}/submissions",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def documents_get(self, document_id: str, *, fields: str | None = None) -> t.DocumentDetail:
        answer: t.DocumentDetail = self.call(
            "GET", f"/api/v1/knowledge/documents/{self.segment(document_id)}", query={"fields": fields}
        )
        return answer

    def documents_delete(self, document_id: str) -> None:
        """Delete a document with all its versions; its citations open nothing any more."""
        self.call("DELETE", f"/api/v1/knowledge/documents/{self.segment(document_id)}")

    def documents_refresh(self, document_id: str, *, idempotency_key: str | None = None) -> t.SubmissionAnswer:
        """Fetch a web page again; split and embed any other document again."""
        answer: t.SubmissionAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/documents/{self.segment(document_id)}/refresh",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def document_versions_get(
        self, document_id: str, number: int, *, fields: str | None = None
    ) -> t.DocumentVersionDetail:
        """Read the text of one version."""
        answer: t.DocumentVersionDetail = self.call(
            "GET",
            f"/api/v1/knowledge/documents/{self.segment(document_id)}/versions/{self.segment(number)}",
            query={"fields": fields},
        )
        return answer

    def gaps_list(
        self, *, fields: str | None = None, status: Literal["open", "drafted", "answered", "dismissed"] | None = None
    ) -> list[t.GapTopicAnswer]:
        """The 100 topics of a status that most visitors asked about."""
        answer: list[t.GapTopicAnswer] = self.call(
            "GET", "/api/v1/knowledge/gaps", query={"fields": fields, "status": status}
        )
        return answer

    def gap_read(self, topic_id: str, *, fields: str | None = None) -> t.GapDetailAnswer:
        """A topic with its questions."""
        answer: t.GapDetailAnswer = self.call(
            "GET", f"/api/v1/knowledge/gaps/{self.segment(topic_id)}", query={"fields": fields}
        )
        return answer

    def gap_answer(
        self, topic_id: str, body: t.GapAnswerRequest, *, idempotency_key: str | None = None
    ) -> t.GapTopicAnswer:
        """Propose an answer. It is published when its card is approved."""
        answer: t.GapTopicAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/gaps/{self.segment(topic_id)}/answer",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def gap_dismiss(self, topic_id: str, *, idempotency_key: str | None = None) -> t.GapTopicAnswer:
        """Put a topic aside; a waiting request for approval is withdrawn."""
        answer: t.GapTopicAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/gaps/{self.segment(topic_id)}/dismiss",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def gap_merge(
        self, topic_id: str, body: t.GapMergeRequest, *, idempotency_key: str | None = None
    ) -> t.GapTopicAnswer:
        """Move a topic's questions into another one."""
        answer: t.GapTopicAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/gaps/{self.segment(topic_id)}/merge",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def gap_reopen(self, topic_id: str, *, idempotency_key: str | None = None) -> t.GapTopicAnswer:
        """Open an answered or dismissed topic again."""
        answer: t.GapTopicAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/gaps/{self.segment(topic_id)}/reopen",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def knowledge_search(self, body: t.SearchRequest, *, idempotency_key: str | None = None) -> t.SearchAnswer:
        """Find the passages from which a chatbot would answer a question. A POST keeps it out of addresses."""
        answer: t.SearchAnswer = self.call(
            "POST", "/api/v1/knowledge/search", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def search_models_get(self, *, fields: str | None = None) -> t.SearchModelsAnswer:
        """Read which models search the knowledge, and how far embedding is."""
        answer: t.SearchModelsAnswer = self.call("GET", "/api/v1/knowledge/search-models", query={"fields": fields})
        return answer

    def search_models_set(self, body: t.SearchModelsRequest, *, if_match: str | None = None) -> t.SearchModelsAnswer:
        """Choose the models. A new embedding model is tried with one text first, at the chatbot's expense."""
        answer: t.SearchModelsAnswer = self.call(
            "PUT", "/api/v1/knowledge/search-models", headers={"If-Match": if_match}, body=body
        )
        return answer

    def sources_list(self, *, fields: str | None = None) -> list[t.SourceAnswer]:
        """Sources that are read again on a schedule."""
        answer: list[t.SourceAnswer] = self.call("GET", "/api/v1/knowledge/sources", query={"fields": fields})
        return answer

    def source_add(self, body: t.SourceRequestBody, *, idempotency_key: str | None = None) -> t.SourceAnswer:
        """Add a source; its first run starts at once. Safe to repeat."""
        answer: t.SourceAnswer = self.call(
            "POST", "/api/v1/knowledge/sources", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def source_read(self, source_id: str, *, fields: str | None = None) -> t.SourceDetailAnswer:
        """The source, what its last run changed, and how many answers that touches."""
        answer: t.SourceDetailAnswer = self.call(
            "GET", f"/api/v1/knowledge/sources/{self.segment(source_id)}", query={"fields": fields}
        )
        return answer

    def source_change(
        self, source_id: str, body: t.PatchedSourceChangeBody | None = None, *, if_match: str | None = None
    ) -> t.SourceAnswer:
        """Pause or resume it."""
        answer: t.SourceAnswer = self.call(
            "PATCH", f"/api/v1/knowledge/sources/{self.segment(source_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def source_remove(self, source_id: str, *, if_match: str | None = None) -> None:
        """Stop reading it; its documents stay."""
        self.call("DELETE", f"/api/v1/knowledge/sources/{self.segment(source_id)}", headers={"If-Match": if_match})

    def source_confirm(self, source_id: str, *, idempotency_key: str | None = None) -> None:
        """Remove the documents from the search that the last run found deleted and kept."""
        self.call(
            "POST",
            f"/api/v1/knowledge/sources/{self.segment(source_id)}/confirm",
            headers={"Idempotency-Key": idempotency_key},
        )

    def source_run(
        self, source_id: str, body: t.SourceRunBody | None = None, *, idempotency_key: str | None = None
    ) -> t.SourceRunAnswer:
        """Start a run now; a dry run reports and stores nothing."""
        answer: t.SourceRunAnswer = self.call(
            "POST",
            f"/api/v1/knowledge/sources/{self.segment(source_id)}/run",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def submissions_get(self, submission_id: str, *, fields: str | None = None) -> t.SubmissionAnswer:
        answer: t.SubmissionAnswer = self.call(
            "GET", f"/api/v1/knowledge/submissions/{self.segment(submission_id)}", query={"fields": fields}
        )
        return answer

    def labels_list(self, *, fields: str | None = None) -> t.LabelsAnswer:
        """List all labels by name."""
        answer: t.LabelsAnswer = self.call("GET", "/api/v1/labels", query={"fields": fields})
        return answer

    def labels_create(self, body: t.LabelRequest, *, idempotency_key: str | None = None) -> t.LabelAnswer:
        answer: t.LabelAnswer = self.call(
            "POST", "/api/v1/labels", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def labels_get(self, label_id: str, *, fields: str | None = None) -> t.LabelAnswer:
        answer: t.LabelAnswer = self.call("GET", f"/api/v1/labels/{self.segment(label_id)}", query={"fields": fields})
        return answer

    def labels_replace(self, label_id: str, body: t.LabelRequest, *, if_match: str | None = None) -> t.LabelAnswer:
        answer: t.LabelAnswer = self.call(
            "PUT", f"/api/v1/labels/{self.segment(label_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def labels_delete(self, label_id: str, *, if_match: str | None = None) -> None:
        """Delete a label, and take it off every conversation."""
        self.call("DELETE", f"/api/v1/labels/{self.segment(label_id)}", headers={"If-Match": if_match})

    def macros_list(self, *, fields: str | None = None) -> t.MacrosAnswer:
        """List all macros by name."""
        answer: t.MacrosAnswer = self.call("GET", "/api/v1/macros", query={"fields": fields})
        return answer

    def macros_create(self, body: t.MacroRequest, *, idempotency_key: str | None = None) -> t.MacroAnswer:
        answer: t.MacroAnswer = self.call(
            "POST", "/api/v1/macros", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def macros_get(self, macro_id: str, *, fields: str | None = None) -> t.MacroAnswer:
        answer: t.MacroAnswer = self.call("GET", f"/api/v1/macros/{self.segment(macro_id)}", query={"fields": fields})
        return answer

    def macros_replace(self, macro_id: str, body: t.MacroRequest, *, if_match: str | None = None) -> t.MacroAnswer:
        answer: t.MacroAnswer = self.call(
            "PUT", f"/api/v1/macros/{self.segment(macro_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def macros_delete(self, macro_id: str, *, if_match: str | None = None) -> None:
        self.call("DELETE", f"/api/v1/macros/{self.segment(macro_id)}", headers={"If-Match": if_match})

    def mcp_servers_list(self, *, fields: str | None = None) -> list[t.ToolServerAnswer]:
        """List servers, and register a new one."""
        answer: list[t.ToolServerAnswer] = self.call("GET", "/api/v1/mcp-servers", query={"fields": fields})
        return answer

    def mcp_servers_register(
        self, body: t.ToolServerRequest, *, idempotency_key: str | None = None
    ) -> t.ToolServerWithTools:
        """Register a server. It is not contacted yet, and none of its tools is in use."""
        answer: t.ToolServerWithTools = self.call(
            "POST", "/api/v1/mcp-servers", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def mcp_server(self, server_id: str, *, fields: str | None = None) -> t.ToolServerWithTools:
        """Get the server with its tools, switch it on or off, change its token, or remove it."""
        answer: t.ToolServerWithTools = self.call(
            "GET", f"/api/v1/mcp-servers/{self.segment(server_id)}", query={"fields": fields}
        )
        return answer

    def mcp_server_change(self, server_id: str, body: t.PatchedToolServerChange | None = None) -> t.ToolServerWithTools:
        """Get the server with its tools, switch it on or off, change its token, or remove it."""
        answer: t.ToolServerWithTools = self.call("PATCH", f"/api/v1/mcp-servers/{self.segment(server_id)}", body=body)
        return answer

    def mcp_server_remove(self, server_id: str) -> None:
        """Remove the server and its token; its tools are in no run any more."""
        self.call("DELETE", f"/api/v1/mcp-servers/{self.segment(server_id)}")

    def mcp_server_look(self, server_id: str, *, idempotency_key: str | None = None) -> t.ToolServerWithTools:
        """Ask the server what it lists now. New tools wait for a person; what changed or is gone is suspended."""
        answer: t.ToolServerWithTools = self.call(
            "POST", f"/api/v1/mcp-servers/{self.segment(server_id)}/look", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def mcp_tool_accept(
        self, server_id: str, tool_id: str, body: t.TermsRequest, *, idempotency_key: str | None = None
    ) -> t.OutsideToolAnswer:
        """Take the tool into use, exactly as it is described under `digest`, on these terms."""
        answer: t.OutsideToolAnswer = self.call(
            "POST",
            f"/api/v1/mcp-servers/{self.segment(server_id)}/tools/{self.segment(tool_id)}/accept",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def mcp_tool_suspend(
        self, server_id: str, tool_id: str, *, idempotency_key: str | None = None
    ) -> t.OutsideToolAnswer:
        """Suspend the tool until a person accepts it again."""
        answer: t.OutsideToolAnswer = self.call(
            "POST",
            f"/api/v1/mcp-servers/{self.segment(server_id)}/tools/{self.segment(tool_id)}/suspend",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def members_list(
        self, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.MembersAnswer:
        """List members, newest first."""
        answer: t.MembersAnswer = self.call(
            "GET", "/api/v1/members", query={"before": before, "fields": fields, "limit": limit}
        )
        return answer

    def members_get(self, member_id: str, *, fields: str | None = None) -> t.MemberAnswer:
        answer: t.MemberAnswer = self.call(
            "GET", f"/api/v1/members/{self.segment(member_id)}", query={"fields": fields}
        )
        return answer

    def members_change(
        self, member_id: str, body: t.PatchedRoleRequest | None = None, *, if_match: str | None = None
    ) -> t.MemberAnswer:
        """Change a member's role."""
        answer: t.MemberAnswer = self.call(
            "PATCH", f"/api/v1/members/{self.segment(member_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def members_remove(self, member_id: str) -> None:
        """Remove a member. The account and the person's decisions stay."""
        self.call("DELETE", f"/api/v1/members/{self.segment(member_id)}")

    def memories_list(
        self,
        *,
        archived: bool | None = None,
        before: str | None = None,
        confirmed: bool | None | None = None,
        customer: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        marked: bool | None | None = None,
        memory_type: Literal["fact", "episode", "preference", "skill_note", "decision", "foresight", "profile"]
        | None = None,
        pinned: bool | None | None = None,
        raw: bool | None = None,
        scope: Literal["conversation", "customer", "tenant"] | None = None,
        search: str | None = None,
    ) -> t.MemoriesAnswer:
        """List memories, newest first."""
        answer: t.MemoriesAnswer = self.call(
            "GET",
            "/api/v1/memories",
            query={
                "archived": archived,
                "before": before,
                "confirmed": confirmed,
                "customer": customer,
                "fields": fields,
                "limit": limit,
                "marked": marked,
                "memory_type": memory_type,
                "pinned": pinned,
                "raw": raw,
                "scope": scope,
                "search": search,
            },
        )
        return answer

    def memories_get(self, memory_id: str, *, fields: str | None = None) -> t.MemoryAnswer:
        answer: t.MemoryAnswer = self.call(
            "GET", f"/api/v1/memories/{self.segment(memory_id)}", query={"fields": fields}
        )
        return answer

    def memories_change(
        self, memory_id: str, body: t.PatchedMemoryChange | None = None, *, if_match: str | None = None
    ) -> t.MemoryAnswer:
        """Correct, pin, unpin, confirm or restore a memory. A correction keeps the former text and ends a
        confirmation."""
        answer: t.MemoryAnswer = self.call(
            "PATCH", f"/api/v1/memories/{self.segment(memory_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def memories_delete(
        self, memory_id: str, *, reason: Literal["wrong", "outdated", "requested", "sensitive"]
    ) -> None:
        """Delete a memory and its former texts, for good."""
        self.call("DELETE", f"/api/v1/memories/{self.segment(memory_id)}", query={"reason": reason})

    def memories_export(self, *, fields: str | None = None, raw: bool | None = None) -> bytes:
        """Export all memories as a signed bundle of JSON lines."""
        answer: bytes = self.read("GET", "/api/v1/memories/bundle", query={"fields": fields, "raw": raw})
        return answer

    def memories_import(self, body: dict[str, Any], *, idempotency_key: str | None = None) -> t.MemoryImportAnswer:
        """Import a bundle, wholly or not at all. Its memories are indexed in the background."""
        answer: t.MemoryImportAnswer = self.call(
            "POST", "/api/v1/memories/bundle", headers={"Idempotency-Key": idempotency_key}, form=body
        )
        return answer

    def memories_of_customer(
        self, *, customer: str, fields: str | None = None, kind: Literal["json", "html"] | None = None
    ) -> dict[str, Any]:
        """Export everything that is remembered about a customer, to hand to them: texts, sources and dates."""
        answer: dict[str, Any] = self.call(
            "GET", "/api/v1/memories/customer", query={"customer": customer, "fields": fields, "kind": kind}
        )
        return answer

    def model_prices_list(
        self, *, fields: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> list[t.PriceAnswer]:
        """The company's own prices of models, and a new or changed one."""
        answer: list[t.PriceAnswer] = self.call(
            "GET", "/api/v1/model-prices", query={"fields": fields, "limit": limit, "offset": offset}
        )
        return answer

    def model_prices_set(self, body: t.PriceRequest, *, idempotency_key: str | None = None) -> t.PriceAnswer:
        """The company's own prices of models, and a new or changed one."""
        answer: t.PriceAnswer = self.call(
            "POST", "/api/v1/model-prices", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def model_prices_delete(self, price_id: str) -> None:
        """Remove a price, so that the public list or the default price holds."""
        self.call("DELETE", f"/api/v1/model-prices/{self.segment(price_id)}")

    def notices_list(self, *, fields: str | None = None, unread: bool | None = None) -> list[t.NoticeAnswer]:
        """The caller's own notices, newest first; an API key reads those of the owner for whom it acts."""
        answer: list[t.NoticeAnswer] = self.call("GET", "/api/v1/notices", query={"fields": fields, "unread": unread})
        return answer

    def notices_mark_read(self, notice_id: str, *, idempotency_key: str | None = None) -> t.NoticeAnswer:
        """Mark a notice as read. Safe to repeat."""
        answer: t.NoticeAnswer = self.call(
            "POST", f"/api/v1/notices/{self.segment(notice_id)}/read", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def oauth_apps_list(
        self, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.OAuthAppsAnswer:
        """List apps, newest first, with revoked ones."""
        answer: t.OAuthAppsAnswer = self.call(
            "GET", "/api/v1/oauth-apps", query={"before": before, "fields": fields, "limit": limit}
        )
        return answer

    def oauth_apps_create(
        self, body: t.NewOAuthAppRequest, *, idempotency_key: str | None = None
    ) -> t.NewOAuthAppAnswer:
        """Register an app with at most the caller's rights."""
        answer: t.NewOAuthAppAnswer = self.call(
            "POST", "/api/v1/oauth-apps", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def oauth_apps_read(self, app_id: str, *, fields: str | None = None) -> t.OAuthAppAnswer:
        answer: t.OAuthAppAnswer = self.call(
            "GET", f"/api/v1/oauth-apps/{self.segment(app_id)}", query={"fields": fields}
        )
        return answer

    def oauth_apps_change(
        self, app_id: str, body: t.PatchedOAuthAppChange | None = None, *, if_match: str | None = None
    ) -> t.OAuthAppAnswer:
        """Change what is named. Scopes that are taken away end at once in every token; for new ones members have to
        consent again. The caller needs the scopes from before and after."""
        answer: t.OAuthAppAnswer = self.call(
            "PATCH", f"/api/v1/oauth-apps/{self.segment(app_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def oauth_apps_revoke(self, app_id: str) -> None:
        """Revoke an app with all its tokens at once. It stays in the list."""
        self.call("DELETE", f"/api/v1/oauth-apps/{self.segment(app_id)}")

    def oauth_apps_replace_secret(self, app_id: str, *, idempotency_key: str | None = None) -> t.NewOAuthAppAnswer:
        """Replace the secret of an app. The one before ends at once."""
        answer: t.NewOAuthAppAnswer = self.call(
            "POST", f"/api/v1/oauth-apps/{self.segment(app_id)}/secret", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def persona_read(self, deployment_id: str, *, fields: str | None = None) -> t.PersonaAnswer:
        """The personality of a deployment."""
        answer: t.PersonaAnswer = self.call(
            "GET", f"/api/v1/personas/{self.segment(deployment_id)}", query={"fields": fields}
        )
        return answer

    def persona_events(self, deployment_id: str, *, fields: str | None = None) -> list[t.EventAnswer]:
        """What moved the personality and the moods of its conversations, newest first, at most 100."""
        answer: list[t.EventAnswer] = self.call(
            "GET", f"/api/v1/personas/{self.segment(deployment_id)}/events", query={"fields": fields}
        )
        return answer

    def persona_feedback(
        self, deployment_id: str, body: t.FeedbackRequest, *, idempotency_key: str | None = None
    ) -> t.PersonaAnswer:
        """Say how the chatbot sounds; the baseline moves by a small step."""
        answer: t.PersonaAnswer = self.call(
            "POST",
            f"/api/v1/personas/{self.segment(deployment_id)}/feedback",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def persona_preset(
        self, deployment_id: str, body: t.PresetRequest, *, idempotency_key: str | None = None
    ) -> t.PersonaAnswer:
        """Choose a named set of axes, or turn the personality off."""
        answer: t.PersonaAnswer = self.call(
            "POST",
            f"/api/v1/personas/{self.segment(deployment_id)}/preset",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def persona_tune(
        self, deployment_id: str, body: t.TuneRequest, *, idempotency_key: str | None = None
    ) -> t.PersonaAnswer:
        """Move axes of the baseline."""
        answer: t.PersonaAnswer = self.call(
            "POST",
            f"/api/v1/personas/{self.segment(deployment_id)}/tune",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def precedents_list(
        self,
        *,
        fields: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        state: Literal["open", "promoted", "dismissed"] | None = None,
    ) -> list[t.PrecedentAnswer]:
        """Patterns that automations observed, the latest first."""
        answer: list[t.PrecedentAnswer] = self.call(
            "GET", "/api/v1/precedents", query={"fields": fields, "limit": limit, "offset": offset, "state": state}
        )
        return answer

    def precedents_dismiss(self, precedent_id: str, *, idempotency_key: str | None = None) -> t.PrecedentAnswer:
        """Dismiss a pattern; if it is observed again, it counts from one. Safe to repeat."""
        answer: t.PrecedentAnswer = self.call(
            "POST",
            f"/api/v1/precedents/{self.segment(precedent_id)}/dismiss",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def proposals_list(
        self,
        *,
        fields: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        state: Literal["proposed", "kept", "dismissed"] | None = None,
    ) -> list[t.ProposalAnswer]:
        """What automations propose to remember, newest first."""
        answer: list[t.ProposalAnswer] = self.call(
            "GET", "/api/v1/proposals", query={"fields": fields, "limit": limit, "offset": offset, "state": state}
        )
        return answer

    def proposals_read(self, proposal_id: str, *, fields: str | None = None) -> t.ProposalAnswer:
        """One proposal."""
        answer: t.ProposalAnswer = self.call(
            "GET", f"/api/v1/proposals/{self.segment(proposal_id)}", query={"fields": fields}
        )
        return answer

    def proposals_dismiss(self, proposal_id: str, *, idempotency_key: str | None = None) -> t.ProposalAnswer:
        """Dismiss a proposal; what was kept is forgotten. Safe to repeat."""
        answer: t.ProposalAnswer = self.call(
            "POST",
            f"/api/v1/proposals/{self.segment(proposal_id)}/dismiss",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def queues_get(self, *, fields: str | None = None) -> t.QueuesAnswer:
        """Read how many messages each queue holds, and which are in progress."""
        answer: t.QueuesAnswer = self.call("GET", "/api/v1/queues", query={"fields": fields})
        return answer

    def releases_rule(self, body: t.ReleaseRuleRequest) -> t.ReleaseRuleRequest:
        """Whether publishing asks for a passed simulation, for all chatbots of the company."""
        answer: t.ReleaseRuleRequest = self.call("PUT", "/api/v1/release-rule", body=body)
        return answer

    def retention_get(self, *, fields: str | None = None) -> t.RetentionAnswer:
        """Read for how long the company keeps its data."""
        answer: t.RetentionAnswer = self.call("GET", "/api/v1/retention", query={"fields": fields})
        return answer

    def retention_edit(
        self, body: t.PatchedRetentionRequest | None = None, *, if_match: str | None = None
    ) -> t.RetentionAnswer:
        """Change for how long the company keeps its data; what is left out stays. What is older is deleted at the
        next clean-up and can't be restored."""
        answer: t.RetentionAnswer = self.call("PATCH", "/api/v1/retention", headers={"If-Match": if_match}, body=body)
        return answer

    def safety_holds_list(
        self,
        *,
        before: str | None = None,
        fields: str | None = None,
        kind: Literal["confirm", "verify", "block"] | None = None,
        limit: int | None = None,
        state: Literal["open", "lifted", "expired", "closed"] | None = None,
    ) -> t.SafetyHoldsAnswer:
        """List holds, newest first. With the state `open`, those that wait for a person."""
        answer: t.SafetyHoldsAnswer = self.call(
            "GET",
            "/api/v1/safety-holds",
            query={"before": before, "fields": fields, "kind": kind, "limit": limit, "state": state},
        )
        return answer

    def safety_policy_get(self, *, fields: str | None = None, principal: str | None = None) -> t.SafetyPolicyAnswer:
        """Read the policy, general or of one principal, with its versions."""
        answer: t.SafetyPolicyAnswer = self.call(
            "GET", "/api/v1/safety-policy", query={"fields": fields, "principal": principal}
        )
        return answer

    def safety_policy_backtest(
        self, body: t.SafetyBacktestRequest, *, idempotency_key: str | None = None
    ) -> t.SafetyBacktestAnswer:
        """Decide recorded steps again with this policy; nothing is saved."""
        answer: t.SafetyBacktestAnswer = self.call(
            "POST", "/api/v1/safety-policy/backtest", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def safety_call(self, surface: str, body: t.SafetyRequest) -> t.SafetyAnswer:
        """`create`, `read` and `execute` take their own operations; `all` takes each of them."""
        answer: t.SafetyAnswer = self.call("POST", f"/api/v1/safety/{self.segment(surface)}", body=body)
        return answer

    def saved_views_list(
        self, *, fields: str | None = None, page: Literal["inbox", "review"] | None = None
    ) -> t.SavedViewsAnswer:
        """List saved views by name."""
        answer: t.SavedViewsAnswer = self.call("GET", "/api/v1/saved-views", query={"fields": fields, "page": page})
        return answer

    def saved_views_create(self, body: t.SavedViewRequest, *, idempotency_key: str | None = None) -> t.SavedViewAnswer:
        """Save a filter of the inbox or of Review under a name."""
        answer: t.SavedViewAnswer = self.call(
            "POST", "/api/v1/saved-views", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def saved_views_get(self, view_id: str, *, fields: str | None = None) -> t.SavedViewAnswer:
        answer: t.SavedViewAnswer = self.call(
            "GET", f"/api/v1/saved-views/{self.segment(view_id)}", query={"fields": fields}
        )
        return answer

    def saved_views_replace(
        self, view_id: str, body: t.SavedViewRequest, *, if_match: str | None = None
    ) -> t.SavedViewAnswer:
        answer: t.SavedViewAnswer = self.call(
            "PUT", f"/api/v1/saved-views/{self.segment(view_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def saved_views_delete(self, view_id: str, *, if_match: str | None = None) -> None:
        self.call("DELETE", f"/api/v1/saved-views/{self.segment(view_id)}", headers={"If-Match": if_match})

    def sessions_list(
        self,
        *,
        assignee: str | None = None,
        before: str | None = None,
        customer: str | None = None,
        deployment: str | None = None,
        fields: str | None = None,
        label: str | None = None,
        limit: int | None = None,
        overdue: bool | None = None,
        search: str | None = None,
        sort: Literal["activity", "due"] | None = None,
        state: Literal["open", "snoozed", "resolved"] | None = None,
        team: str | None = None,
        updated_since: str | None = None,
    ) -> t.ConversationListAnswer:
        """List conversations with messages, the last active first."""
        answer: t.ConversationListAnswer = self.call(
            "GET",
            "/api/v1/sessions",
            query={
                "assignee": assignee,
                "before": before,
                "customer": customer,
                "deployment": deployment,
                "fields": fields,
                "label": label,
                "limit": limit,
                "overdue": overdue,
                "search": search,
                "sort": sort,
                "state": state,
                "team": team,
                "updated_since": updated_since,
            },
        )
        return answer

    def sessions_create(
        self, body: t.NewConversationRequest, *, idempotency_key: str | None = None
    ) -> t.NewConversationAnswer:
        """Start a conversation from your server. What the customer may reach is decided as for the widget's visitors:
        by the signed identity and by gates, never by the API key."""
        answer: t.NewConversationAnswer = self.call(
            "POST", "/api/v1/sessions", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def sessions_get(self, session_id: str, *, fields: str | None = None) -> t.ConversationAnswer:
        answer: t.ConversationAnswer = self.call(
            "GET", f"/api/v1/sessions/{self.segment(session_id)}", query={"fields": fields}
        )
        return answer

    def sessions_edit(
        self, session_id: str, body: t.PatchedConversationEdit | None = None, *, if_match: str | None = None
    ) -> t.ConversationAnswer:
        """Take over or hand back, resolve, snooze or reopen, assign and label a conversation: all of it or
        nothing."""
        answer: t.ConversationAnswer = self.call(
            "PATCH", f"/api/v1/sessions/{self.segment(session_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def session_assistance_list(self, session_id: str, *, fields: str | None = None) -> t.AssistanceList:
        """List what a chatbot's team can be helped with, and the newest requests with what their models saw."""
        answer: t.AssistanceList = self.call(
            "GET", f"/api/v1/sessions/{self.segment(session_id)}/assistance", query={"fields": fields}
        )
        return answer

    def session_assistance_create(
        self, session_id: str, body: t.AssistRequest, *, idempotency_key: str | None = None
    ) -> t.AssistAnswer:
        """Ask for a suggested reply, a rewritten draft, a summary, what the bot would do, or a filled form. Nothing
        is sent or carried out."""
        answer: t.AssistAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/assistance",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def session_assistance_cancel(
        self, assistance_id: str, session_id: str, *, idempotency_key: str | None = None
    ) -> t.CancelAnswer:
        """Cancel a request of the caller's own while it runs. What its model has used is charged."""
        answer: t.CancelAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/assistance/{self.segment(assistance_id)}/cancel",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def session_cards_create(
        self, session_id: str, body: t.AskRequest, *, idempotency_key: str | None = None
    ) -> t.CardAnswer:
        """Ask the visitor of a conversation."""
        answer: t.CardAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/cards",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def session_card(self, card_id: str, session_id: str, *, fields: str | None = None) -> t.CardAnswer:
        """What came of it; or take it back."""
        answer: t.CardAnswer = self.call(
            "GET",
            f"/api/v1/sessions/{self.segment(session_id)}/cards/{self.segment(card_id)}",
            query={"fields": fields},
        )
        return answer

    def session_card_withdraw(self, card_id: str, session_id: str) -> t.CardAnswer:
        """What came of it; or take it back."""
        answer: t.CardAnswer = self.call(
            "DELETE", f"/api/v1/sessions/{self.segment(session_id)}/cards/{self.segment(card_id)}"
        )
        return answer

    def session_card_secret(
        self, card_id: str, session_id: str, *, idempotency_key: str | None = None
    ) -> t.SecretAnswer:
        """Take out what the visitor gave in secret; it is there once."""
        answer: t.SecretAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/cards/{self.segment(card_id)}/secret",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def sessions_erase(self, session_id: str, *, idempotency_key: str | None = None) -> t.ErasureAnswer:
        """Erase everything about the visitor of a conversation, or about the contact that they were verified as."""
        answer: t.ErasureAnswer = self.call(
            "POST", f"/api/v1/sessions/{self.segment(session_id)}/erase", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def sessions_export(self, session_id: str, *, idempotency_key: str | None = None) -> bytes:
        """Export everything about the visitor of a conversation, or about the contact that they were verified as."""
        answer: bytes = self.read(
            "POST", f"/api/v1/sessions/{self.segment(session_id)}/export", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def session_files_list(self, session_id: str, *, fields: str | None = None) -> t.SessionFilesAnswer:
        """List the files of the visitor and of staff, in the order of the conversation."""
        answer: t.SessionFilesAnswer = self.call(
            "GET", f"/api/v1/sessions/{self.segment(session_id)}/files", query={"fields": fields}
        )
        return answer

    def session_files_create(
        self, session_id: str, body: dict[str, Any], *, idempotency_key: str | None = None
    ) -> t.SessionFileAnswer:
        """Send a file to the visitor, in a conversation that the caller has taken over. What it is, its bytes say."""
        answer: t.SessionFileAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/files",
            headers={"Idempotency-Key": idempotency_key},
            form=body,
        )
        return answer

    def session_files_download(self, file_id: str, session_id: str, *, fields: str | None = None) -> bytes:
        """Download a file. Its media type follows its kind, not what the visitor's browser said."""
        answer: bytes = self.read(
            "GET",
            f"/api/v1/sessions/{self.segment(session_id)}/files/{self.segment(file_id)}",
            query={"fields": fields},
        )
        return answer

    def sessions_forget(self, session_id: str, *, idempotency_key: str | None = None) -> t.VisitorForgotten:
        """Delete what is remembered of the visitor. For members; a program has no name to answer for it with."""
        answer: t.VisitorForgotten = self.call(
            "POST", f"/api/v1/sessions/{self.segment(session_id)}/forget", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def session_macros_run(
        self, session_id: str, body: t.MacroRunRequest, *, idempotency_key: str | None = None
    ) -> t.MacroRunAnswer:
        """Run a macro on a conversation, all of its steps or none; or preview what it would do. A reply is not
        sent."""
        answer: t.MacroRunAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/macros",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def session_messages_list(
        self, session_id: str, *, after_seq: int | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.MessagesAnswer:
        """List everything recorded in a conversation by `seq`, oldest first."""
        answer: t.MessagesAnswer = self.call(
            "GET",
            f"/api/v1/sessions/{self.segment(session_id)}/messages",
            query={"after_seq": after_seq, "fields": fields, "limit": limit},
        )
        return answer

    def session_messages_create(
        self, session_id: str, body: t.TextRequest, *, idempotency_key: str | None = None
    ) -> t.MessageAnswer:
        """Say something to the visitor, in a conversation that the caller has taken over."""
        answer: t.MessageAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/messages",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def session_notes_list(
        self, session_id: str, *, before: str | None = None, fields: str | None = None, limit: int | None = None
    ) -> t.NotesAnswer:
        """List private notes, newest first."""
        answer: t.NotesAnswer = self.call(
            "GET",
            f"/api/v1/sessions/{self.segment(session_id)}/notes",
            query={"before": before, "fields": fields, "limit": limit},
        )
        return answer

    def session_notes_create(
        self, session_id: str, body: t.TextRequest, *, idempotency_key: str | None = None
    ) -> t.NoteAnswer:
        """Write a note for the team; `@` and the name of a member mentions them. No visitor and no model reads it."""
        answer: t.NoteAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/notes",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def session_read_state_get(
        self, member_id: str, session_id: str, *, fields: str | None = None
    ) -> t.ReadStateAnswer:
        """What a member has not read in a conversation. Members see their own, API keys everybody's."""
        answer: t.ReadStateAnswer = self.call(
            "GET",
            f"/api/v1/sessions/{self.segment(session_id)}/read-state/{self.segment(member_id)}",
            query={"fields": fields},
        )
        return answer

    def session_read_state_set(self, member_id: str, session_id: str, body: t.ReadStateRequest) -> t.ReadStateAnswer:
        """Mark a conversation as read or unread for a member."""
        answer: t.ReadStateAnswer = self.call(
            "PUT", f"/api/v1/sessions/{self.segment(session_id)}/read-state/{self.segment(member_id)}", body=body
        )
        return answer

    def session_turns_trace(self, number: int, session_id: str, *, fields: str | None = None) -> t.TraceAnswer:
        """Read what the model saw in a turn: its window by zone, with each text where it is still kept."""
        answer: t.TraceAnswer = self.call(
            "GET",
            f"/api/v1/sessions/{self.segment(session_id)}/turns/{self.segment(number)}/trace",
            query={"fields": fields},
        )
        return answer

    def session_visitor_messages_create(
        self, session_id: str, body: t.VisitorMessageRequest, *, idempotency_key: str | None = None
    ) -> t.VisitorMessageAnswer:
        """Hand in what the customer wrote, in a conversation that the same caller started. It passes the same gates,
        limits and budgets as a message from the widget; the answer appears among the conversation's messages."""
        answer: t.VisitorMessageAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/visitor-messages",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def session_requests_withdraw(self, session_id: str, *, idempotency_key: str | None = None) -> t.WithdrawnAnswer:
        """Withdraw the bot's requests for approval in a conversation that the caller has taken over."""
        answer: t.WithdrawnAnswer = self.call(
            "POST",
            f"/api/v1/sessions/{self.segment(session_id)}/withdraw-requests",
            headers={"Idempotency-Key": idempotency_key},
        )
        return answer

    def simulation_suites_list(
        self,
        *,
        before: str | None = None,
        deployment: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
    ) -> t.SimulationSuitesAnswer:
        """List suites, newest first."""
        answer: t.SimulationSuitesAnswer = self.call(
            "GET",
            "/api/v1/simulation-suites",
            query={"before": before, "deployment": deployment, "fields": fields, "limit": limit},
        )
        return answer

    def simulation_suites_create(
        self, body: t.SimulationSuiteRequest, *, idempotency_key: str | None = None
    ) -> t.SimulationSuiteDetail:
        """Create the deployment's suite of this name, or make one from what the company has. One that exists
        stays."""
        answer: t.SimulationSuiteDetail = self.call(
            "POST", "/api/v1/simulation-suites", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def simulation_suites_get(self, suite_id: str, *, fields: str | None = None) -> t.SimulationSuiteDetail:
        """Read a suite with its scenarios."""
        answer: t.SimulationSuiteDetail = self.call(
            "GET", f"/api/v1/simulation-suites/{self.segment(suite_id)}", query={"fields": fields}
        )
        return answer

    def simulation_scenarios_save(
        self, suite_id: str, body: t.ScenarioRequest, *, idempotency_key: str | None = None
    ) -> t.ScenarioAnswer:
        """Add a scenario to the suite; one of the same name is replaced."""
        answer: t.ScenarioAnswer = self.call(
            "POST",
            f"/api/v1/simulation-suites/{self.segment(suite_id)}/scenarios",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def simulations_list(
        self,
        *,
        before: str | None = None,
        deployment: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        status: Literal["queued", "running", "finished", "stopped", "failed"] | None = None,
        suite: str | None = None,
    ) -> t.SimulationsAnswer:
        """List runs, newest first."""
        answer: t.SimulationsAnswer = self.call(
            "GET",
            "/api/v1/simulations",
            query={
                "before": before,
                "deployment": deployment,
                "fields": fields,
                "limit": limit,
                "status": status,
                "suite": suite,
            },
        )
        return answer

    def simulations_start(self, body: t.SimulationRequest, *, idempotency_key: str | None = None) -> t.SimulationAnswer:
        """Start a run of a suite against its deployment as it is, or against the release that would be published."""
        answer: t.SimulationAnswer = self.call(
            "POST", "/api/v1/simulations", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def simulations_get(self, run_id: str, *, fields: str | None = None) -> t.SimulationDetail:
        """Read a run with its results, and what came out otherwise than in the run before."""
        answer: t.SimulationDetail = self.call(
            "GET", f"/api/v1/simulations/{self.segment(run_id)}", query={"fields": fields}
        )
        return answer

    def simulations_resume(self, run_id: str, *, idempotency_key: str | None = None) -> t.SimulationDetail:
        """Play what a run that was stopped or failed has left out; the other results stay."""
        answer: t.SimulationDetail = self.call(
            "POST", f"/api/v1/simulations/{self.segment(run_id)}/resume", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def simulations_stop(self, run_id: str, *, idempotency_key: str | None = None) -> t.SimulationDetail:
        """Stop a run; scenarios that are being played end as they are."""
        answer: t.SimulationDetail = self.call(
            "POST", f"/api/v1/simulations/{self.segment(run_id)}/stop", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def skill_drafts_list(self, *, fields: str | None = None) -> list[t.DraftLine]:
        """List drafts, and create new ones."""
        answer: list[t.DraftLine] = self.call("GET", "/api/v1/skill-drafts", query={"fields": fields})
        return answer

    def skill_drafts_begin(self, body: t.DraftRequest, *, idempotency_key: str | None = None) -> t.DraftAnswer:
        """Describe what a skill should do. A model writes the draft; without a model, a template is laid out."""
        answer: t.DraftAnswer = self.call(
            "POST", "/api/v1/skill-drafts", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def skill_drafts_get(self, draft_id: str, *, fields: str | None = None) -> t.DraftAnswer:
        """Get a draft with its newest revision, or delete it."""
        answer: t.DraftAnswer = self.call(
            "GET", f"/api/v1/skill-drafts/{self.segment(draft_id)}", query={"fields": fields}
        )
        return answer

    def skill_drafts_delete(self, draft_id: str) -> None:
        """Delete the draft and all its revisions; what was proposed of it stays."""
        self.call("DELETE", f"/api/v1/skill-drafts/{self.segment(draft_id)}")

    def skill_drafts_revise(
        self, draft_id: str, body: t.ChangeRequest, *, idempotency_key: str | None = None
    ) -> t.DraftAnswer:
        """Have a model change the draft as described in words, or write one of its files."""
        answer: t.DraftAnswer = self.call(
            "POST",
            f"/api/v1/skill-drafts/{self.segment(draft_id)}/revisions",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def skill_drafts_submit(
        self, draft_id: str, body: t.SeenRequest, *, idempotency_key: str | None = None
    ) -> t.SkillAnswer:
        """Propose exactly this revision for approval; nothing of it runs before that."""
        answer: t.SkillAnswer = self.call(
            "POST",
            f"/api/v1/skill-drafts/{self.segment(draft_id)}/submit",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def skill_drafts_try(
        self, draft_id: str, body: t.SeenRequest, *, idempotency_key: str | None = None
    ) -> t.DraftAnswer:
        """Run the revision's tests in an isolated sandbox."""
        answer: t.DraftAnswer = self.call(
            "POST",
            f"/api/v1/skill-drafts/{self.segment(draft_id)}/try",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def skill_packages_list(self, *, fields: str | None = None) -> list[t.PackageAnswer]:
        """List packages, and import new ones."""
        answer: list[t.PackageAnswer] = self.call("GET", "/api/v1/skill-packages", query={"fields": fields})
        return answer

    def skill_packages_import(self, body: dict[str, Any], *, idempotency_key: str | None = None) -> t.PackageAnswer:
        """Import a package. One from a trusted publisher is proposed; for others, a person reviews the publisher."""
        answer: t.PackageAnswer = self.call(
            "POST", "/api/v1/skill-packages", headers={"Idempotency-Key": idempotency_key}, form=body
        )
        return answer

    def skill_packages_refuse(self, package_id: str, *, idempotency_key: str | None = None) -> None:
        """Refuse a waiting package and delete its bytes."""
        self.call(
            "POST",
            f"/api/v1/skill-packages/{self.segment(package_id)}/refuse",
            headers={"Idempotency-Key": idempotency_key},
        )

    def skill_publishers_list(self, *, fields: str | None = None) -> list[t.PublisherAnswer]:
        """List the trusted publishers."""
        answer: list[t.PublisherAnswer] = self.call("GET", "/api/v1/skill-publishers", query={"fields": fields})
        return answer

    def skill_publishers_remove(self, publisher_id: str) -> None:
        """Remove a trusted publisher: new packages from this key wait for review, what was installed stays."""
        self.call("DELETE", f"/api/v1/skill-publishers/{self.segment(publisher_id)}")

    def skills_list(self, *, fields: str | None = None) -> list[t.SkillAnswer]:
        """List the newest version of each skill, and import new ones."""
        answer: list[t.SkillAnswer] = self.call("GET", "/api/v1/skills", query={"fields": fields})
        return answer

    def skills_import(
        self, body: t.ImportRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.SkillAnswer:
        """Import a skill and propose it. It is not in use before a person approves its card."""
        answer: t.SkillAnswer = self.call(
            "POST", "/api/v1/skills", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def skills_get(self, name: str, *, fields: str | None = None) -> list[t.SkillAnswer]:
        """Get all versions of one skill, newest first."""
        answer: list[t.SkillAnswer] = self.call("GET", f"/api/v1/skills/{self.segment(name)}", query={"fields": fields})
        return answer

    def skills_diff(self, name: str, *, after: int, before: int, fields: str | None = None) -> t.SkillDiffAnswer:
        """Compare the files of two versions."""
        answer: t.SkillDiffAnswer = self.call(
            "GET",
            f"/api/v1/skills/{self.segment(name)}/diff",
            query={"after": after, "before": before, "fields": fields},
        )
        return answer

    def skills_disable(self, name: str, *, idempotency_key: str | None = None) -> t.CountAnswer:
        """Switch every version of the skill off."""
        answer: t.CountAnswer = self.call(
            "POST", f"/api/v1/skills/{self.segment(name)}/disable", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def skills_purge(self, name: str, *, idempotency_key: str | None = None) -> t.CountAnswer:
        """Switch the skill off and delete what was written with it. Cannot be undone."""
        answer: t.CountAnswer = self.call(
            "POST", f"/api/v1/skills/{self.segment(name)}/purge", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def skills_roll_back(
        self, name: str, body: t.RollBackRequest, *, idempotency_key: str | None = None
    ) -> t.SkillAnswer:
        """Make an earlier version the only one in use."""
        answer: t.SkillAnswer = self.call(
            "POST",
            f"/api/v1/skills/{self.segment(name)}/roll-back",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def skills_export(self, name: str, number: int, *, fields: str | None = None) -> bytes:
        """Export the version as one signed file; the same bytes each time."""
        answer: bytes = self.read(
            "GET",
            f"/api/v1/skills/{self.segment(name)}/versions/{self.segment(number)}/package",
            query={"fields": fields},
        )
        return answer

    def sla_policies_list(self, *, fields: str | None = None) -> t.SlaPoliciesAnswer:
        """List all SLA policies in the order in which they are tried."""
        answer: t.SlaPoliciesAnswer = self.call("GET", "/api/v1/sla-policies", query={"fields": fields})
        return answer

    def sla_policies_create(self, body: t.SlaPolicyRequest, *, idempotency_key: str | None = None) -> t.SlaPolicyAnswer:
        """Create an SLA policy with at least one target."""
        answer: t.SlaPolicyAnswer = self.call(
            "POST", "/api/v1/sla-policies", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def sla_policies_get(self, policy_id: str, *, fields: str | None = None) -> t.SlaPolicyAnswer:
        answer: t.SlaPolicyAnswer = self.call(
            "GET", f"/api/v1/sla-policies/{self.segment(policy_id)}", query={"fields": fields}
        )
        return answer

    def sla_policies_edit(
        self, policy_id: str, body: t.PatchedSlaPolicyChange | None = None, *, if_match: str | None = None
    ) -> t.SlaPolicyAnswer:
        """Change the named fields of a policy."""
        answer: t.SlaPolicyAnswer = self.call(
            "PATCH", f"/api/v1/sla-policies/{self.segment(policy_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def sla_policies_delete(self, policy_id: str, *, if_match: str | None = None) -> None:
        self.call("DELETE", f"/api/v1/sla-policies/{self.segment(policy_id)}", headers={"If-Match": if_match})

    def spending_get(self, *, days: int | None = None, fields: str | None = None) -> t.SpendingAnswer:
        """Read what the last days cost, by day, deployment, model and purpose, the limits, and what is paused."""
        answer: t.SpendingAnswer = self.call("GET", "/api/v1/spending", query={"days": days, "fields": fields})
        return answer

    def spending_policy_get(self, *, fields: str | None = None) -> t.SpendingPolicyFields:
        """Read what happens at a limit, what a visitor may cost a day, and the price of models that no list knows."""
        answer: t.SpendingPolicyFields = self.call("GET", "/api/v1/spending-policy", query={"fields": fields})
        return answer

    def spending_policy_edit(
        self, body: t.PatchedSpendingPolicyRequest | None = None, *, if_match: str | None = None
    ) -> t.SpendingPolicyFields:
        """Change the policy from the next call that costs money; what is left out stays."""
        answer: t.SpendingPolicyFields = self.call(
            "PATCH", "/api/v1/spending-policy", headers={"If-Match": if_match}, body=body
        )
        return answer

    def spending_resume(self, *, idempotency_key: str | None = None) -> t.ResumedAnswer:
        """Resume what reached limits paused. The limits stay: a call that does not fit is still refused."""
        answer: t.ResumedAnswer = self.call(
            "POST", "/api/v1/spending/resume", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def task_templates_list(self, *, fields: str | None = None) -> list[t.TaskTemplateAnswer]:
        """List the ready automations of the gallery."""
        answer: list[t.TaskTemplateAnswer] = self.call("GET", "/api/v1/task-templates", query={"fields": fields})
        return answer

    def tasks_list(
        self,
        *,
        fields: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        status: Literal["pending", "scheduled", "running", "dead_letter"] | None = None,
    ) -> list[t.TaskAnswer]:
        """List tasks, newest first; create one."""
        answer: list[t.TaskAnswer] = self.call(
            "GET", "/api/v1/tasks", query={"fields": fields, "limit": limit, "offset": offset, "status": status}
        )
        return answer

    def tasks_create(self, body: t.NewTask, *, idempotency_key: str | None = None) -> t.TaskAnswer:
        """List tasks, newest first; create one."""
        answer: t.TaskAnswer = self.call(
            "POST", "/api/v1/tasks", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def tasks_read(self, task_id: str, *, fields: str | None = None) -> t.TaskAnswer:
        """Read, change or delete one task; its sessions stay."""
        answer: t.TaskAnswer = self.call("GET", f"/api/v1/tasks/{self.segment(task_id)}", query={"fields": fields})
        return answer

    def tasks_change(self, task_id: str, body: t.PatchedTaskChange | None = None) -> t.TaskAnswer:
        """Read, change or delete one task; its sessions stay."""
        answer: t.TaskAnswer = self.call("PATCH", f"/api/v1/tasks/{self.segment(task_id)}", body=body)
        return answer

    def tasks_delete(self, task_id: str) -> None:
        """Read, change or delete one task; its sessions stay."""
        self.call("DELETE", f"/api/v1/tasks/{self.segment(task_id)}")

    def tasks_retry(self, task_id: str, *, idempotency_key: str | None = None) -> t.SessionAnswer:
        """Release a quarantined task and start it (spec 003: retry a dead-lettered task)."""
        answer: t.SessionAnswer = self.call(
            "POST", f"/api/v1/tasks/{self.segment(task_id)}/retry", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def tasks_run_now(
        self, task_id: str, body: t.RunRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.SessionAnswer:
        """Start a session manually."""
        answer: t.SessionAnswer = self.call(
            "POST",
            f"/api/v1/tasks/{self.segment(task_id)}/run-now",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def tasks_runs(
        self, task_id: str, *, fields: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> list[t.SessionAnswer]:
        """The sessions of one task, newest first."""
        answer: list[t.SessionAnswer] = self.call(
            "GET",
            f"/api/v1/tasks/{self.segment(task_id)}/runs",
            query={"fields": fields, "limit": limit, "offset": offset},
        )
        return answer

    def tasks_triggers_list(self, task_id: str, *, fields: str | None = None) -> list[t.TriggerAnswer]:
        """List or add the triggers of a task."""
        answer: list[t.TriggerAnswer] = self.call(
            "GET", f"/api/v1/tasks/{self.segment(task_id)}/triggers", query={"fields": fields}
        )
        return answer

    def tasks_triggers_create(
        self, task_id: str, body: t.TriggerRequest, *, idempotency_key: str | None = None
    ) -> t.TriggerAnswer:
        """List or add the triggers of a task."""
        answer: t.TriggerAnswer = self.call(
            "POST",
            f"/api/v1/tasks/{self.segment(task_id)}/triggers",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def tasks_triggers_change(
        self, task_id: str, trigger_id: str, body: t.PatchedTriggerChange | None = None
    ) -> t.TriggerAnswer:
        """Change, enable, disable or delete a trigger."""
        answer: t.TriggerAnswer = self.call(
            "PATCH", f"/api/v1/tasks/{self.segment(task_id)}/triggers/{self.segment(trigger_id)}", body=body
        )
        return answer

    def tasks_triggers_delete(self, task_id: str, trigger_id: str) -> None:
        """Change, enable, disable or delete a trigger."""
        self.call("DELETE", f"/api/v1/tasks/{self.segment(task_id)}/triggers/{self.segment(trigger_id)}")

    def tasks_budget(self, *, fields: str | None = None) -> t.LeftAnswer:
        """What each running session has left, and for members who decide, what the company has (spec 003)."""
        answer: t.LeftAnswer = self.call("GET", "/api/v1/tasks/budget", query={"fields": fields})
        return answer

    def scheduler_read(self, *, fields: str | None = None) -> t.SettingsChange:
        """Settings of automations. A change takes effect at once, without a restart (spec 003)."""
        answer: t.SettingsChange = self.call("GET", "/api/v1/tasks/settings", query={"fields": fields})
        return answer

    def scheduler_change(self, body: t.PatchedSettingsChange | None = None) -> t.SettingsChange:
        """Settings of automations. A change takes effect at once, without a restart (spec 003)."""
        answer: t.SettingsChange = self.call("PATCH", "/api/v1/tasks/settings", body=body)
        return answer

    def teams_list(self, *, fields: str | None = None) -> t.TeamsAnswer:
        """List all teams by name."""
        answer: t.TeamsAnswer = self.call("GET", "/api/v1/teams", query={"fields": fields})
        return answer

    def teams_create(self, body: t.TeamRequest, *, idempotency_key: str | None = None) -> t.TeamAnswer:
        answer: t.TeamAnswer = self.call(
            "POST", "/api/v1/teams", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def teams_get(self, team_id: str, *, fields: str | None = None) -> t.TeamAnswer:
        answer: t.TeamAnswer = self.call("GET", f"/api/v1/teams/{self.segment(team_id)}", query={"fields": fields})
        return answer

    def teams_replace(self, team_id: str, body: t.TeamRequest, *, if_match: str | None = None) -> t.TeamAnswer:
        answer: t.TeamAnswer = self.call(
            "PUT", f"/api/v1/teams/{self.segment(team_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def teams_delete(self, team_id: str, *, if_match: str | None = None) -> None:
        """Delete a team. Its conversations stay, with their assignees."""
        self.call("DELETE", f"/api/v1/teams/{self.segment(team_id)}", headers={"If-Match": if_match})

    def visitor_limits_get(self, *, fields: str | None = None) -> t.VisitorLimitsAnswer:
        """Read how much the company's visitors may send."""
        answer: t.VisitorLimitsAnswer = self.call("GET", "/api/v1/visitor-limits", query={"fields": fields})
        return answer

    def visitor_limits_edit(
        self, body: t.PatchedVisitorLimitsRequest | None = None, *, if_match: str | None = None
    ) -> t.VisitorLimitsAnswer:
        """Change how much the company's visitors may send; what is left out stays, null uses the installation's."""
        answer: t.VisitorLimitsAnswer = self.call(
            "PATCH", "/api/v1/visitor-limits", headers={"If-Match": if_match}, body=body
        )
        return answer

    def web_search_get(self, *, fields: str | None = None) -> t.WebSearchAnswer:
        """Read how the company searches the web. 404 where no search is set."""
        answer: t.WebSearchAnswer = self.call("GET", "/api/v1/web-search", query={"fields": fields})
        return answer

    def web_search_set(self, body: t.WebSearchRequest) -> t.WebSearchAnswer:
        """Search with this provider from now on."""
        answer: t.WebSearchAnswer = self.call("PUT", "/api/v1/web-search", body=body)
        return answer

    def web_search_remove(self) -> None:
        """Remove the search and its key: nothing is searched any more."""
        self.call("DELETE", "/api/v1/web-search")

    def webhooks_list(self, *, fields: str | None = None) -> list[t.WebhookAnswer]:
        """Webhooks for events. The secret of a new one is in this response only."""
        answer: list[t.WebhookAnswer] = self.call("GET", "/api/v1/webhooks", query={"fields": fields})
        return answer

    def webhooks_create(self, body: t.WebhookRequest, *, idempotency_key: str | None = None) -> t.NewWebhook:
        """Webhooks for events. The secret of a new one is in this response only."""
        answer: t.NewWebhook = self.call(
            "POST", "/api/v1/webhooks", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def webhooks_get(self, webhook_id: str, *, fields: str | None = None) -> t.WebhookAnswer:
        """Read, change or delete a webhook."""
        answer: t.WebhookAnswer = self.call(
            "GET", f"/api/v1/webhooks/{self.segment(webhook_id)}", query={"fields": fields}
        )
        return answer

    def webhooks_change(
        self, webhook_id: str, body: t.PatchedWebhookEdit | None = None, *, if_match: str | None = None
    ) -> t.WebhookAnswer:
        """Change where or about what it is told, or turn it off and on. Its secret stays."""
        answer: t.WebhookAnswer = self.call(
            "PATCH", f"/api/v1/webhooks/{self.segment(webhook_id)}", headers={"If-Match": if_match}, body=body
        )
        return answer

    def webhooks_delete(self, webhook_id: str) -> None:
        """Read, change or delete a webhook."""
        self.call("DELETE", f"/api/v1/webhooks/{self.segment(webhook_id)}")

    def webhooks_deliveries(
        self, webhook_id: str, *, fields: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> list[t.DeliveryAnswer]:
        """Deliveries to a webhook, newest first."""
        answer: list[t.DeliveryAnswer] = self.call(
            "GET",
            f"/api/v1/webhooks/{self.segment(webhook_id)}/deliveries",
            query={"fields": fields, "limit": limit, "offset": offset},
        )
        return answer

    def webhooks_replay(
        self, webhook_id: str, body: t.ReplayRequest, *, idempotency_key: str | None = None
    ) -> t.ReplayAnswer:
        """Post events once more to a webhook, with the same `webhook-id`."""
        answer: t.ReplayAnswer = self.call(
            "POST",
            f"/api/v1/webhooks/{self.segment(webhook_id)}/replay",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def webhooks_rotate_secret(
        self, webhook_id: str, body: t.RotateRequest | None = None, *, idempotency_key: str | None = None
    ) -> t.RotateAnswer:
        """Give a webhook another secret. For a while deliveries are signed with both."""
        answer: t.RotateAnswer = self.call(
            "POST",
            f"/api/v1/webhooks/{self.segment(webhook_id)}/rotate-secret",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def webhooks_test(self, webhook_id: str, *, idempotency_key: str | None = None) -> t.TestAnswer:
        """Post a `webhook.test` event to a webhook."""
        answer: t.TestAnswer = self.call(
            "POST", f"/api/v1/webhooks/{self.segment(webhook_id)}/test", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def widget_article(self, document_id: str, key: str) -> t.ArticleAnswer:
        """One article, for the visitor whose level reaches it. Without a token the level is the lowest."""
        answer: t.ArticleAnswer = self.call(
            "GET", f"/api/v1/widget/{self.segment(key)}/articles/{self.segment(document_id)}"
        )
        return answer

    def widget_article_search(self, key: str, body: t.ArticleSearchRequest) -> t.ArticlesFound:
        """The articles that answer a query, best first. A POST, so that what is searched for is in no URL. Without a
        token the articles are those that a visitor who is not verified may read."""
        answer: t.ArticlesFound = self.call("POST", f"/api/v1/widget/{self.segment(key)}/articles/search", body=body)
        return answer

    def widget_card_fill(self, card_id: str, key: str, body: t.FillRequest) -> t.FillAnswer:
        """The visitor fills in a form that they were asked; over HTTP, so that a line that is down loses nothing."""
        answer: t.FillAnswer = self.call(
            "POST", f"/api/v1/widget/{self.segment(key)}/cards/{self.segment(card_id)}", body=body
        )
        return answer

    def widget_continue(self, key: str, body: t.ContinueRequest) -> t.ContinueAnswer:
        """An address that continues this conversation in another channel."""
        answer: t.ContinueAnswer = self.call("POST", f"/api/v1/widget/{self.segment(key)}/continue", body=body)
        return answer

    def widget_conversations(self, key: str, body: t.ConversationsRequest) -> list[t.Conversation]:
        """The conversations to which the browser holds the resume tokens. A POST, so that tokens are in no URL."""
        answer: list[t.Conversation] = self.call("POST", f"/api/v1/widget/{self.segment(key)}/conversations", body=body)
        return answer

    def widget_email_answers(self, key: str, body: t.EmailAnswersRequest) -> t.EmailAnswersAnswer:
        """Ask for answers by e-mail while the visitor is away. The address has to be confirmed first."""
        answer: t.EmailAnswersAnswer = self.call("POST", f"/api/v1/widget/{self.segment(key)}/email-answers", body=body)
        return answer

    def widget_file_send(self, key: str, body: dict[str, Any]) -> t.FileAnswer:
        """Send a file into the conversation."""
        answer: t.FileAnswer = self.call("POST", f"/api/v1/widget/{self.segment(key)}/files", form=body)
        return answer

    def widget_file(self, file_id: str, key: str) -> str:
        """A file of this conversation, to save."""
        answer: str = self.call("GET", f"/api/v1/widget/{self.segment(key)}/files/{self.segment(file_id)}")
        return answer

    def widget_form(self, key: str, body: t.FormRequest) -> t.FormAnswer:
        """Answer the form before the first word; once a conversation."""
        answer: t.FormAnswer = self.call("POST", f"/api/v1/widget/{self.segment(key)}/form", body=body)
        return answer

    def widget_offers(self, key: str) -> t.Offers:
        """What a deployment offers beside talking; asked before there is a conversation, and stores nothing."""
        answer: t.Offers = self.call("GET", f"/api/v1/widget/{self.segment(key)}/offers")
        return answer

    def widget_rating(self, key: str) -> t.RatingAnswer:
        """How it was: one rating a conversation, changeable for a day."""
        answer: t.RatingAnswer = self.call("GET", f"/api/v1/widget/{self.segment(key)}/rating")
        return answer

    def widget_rate(self, key: str, body: t.RatingBody) -> t.RatingAnswer:
        """How it was: one rating a conversation, changeable for a day."""
        answer: t.RatingAnswer = self.call("PUT", f"/api/v1/widget/{self.segment(key)}/rating", body=body)
        return answer

    def widget_session_start(self, key: str, body: t.StartRequest | None = None) -> t.StartAnswer:
        """Begin or resume a visitor's conversation."""
        answer: t.StartAnswer = self.call("POST", f"/api/v1/widget/{self.segment(key)}/sessions", body=body)
        return answer

    def widget_transcript_ask(self, key: str, body: t.TranscriptAsked) -> t.TranscriptAnswer:
        """Ask for what was said so far by e-mail."""
        answer: t.TranscriptAnswer = self.call("POST", f"/api/v1/widget/{self.segment(key)}/transcripts", body=body)
        return answer

    def widget_transcript(self, key: str, request_id: str) -> t.TranscriptAnswer:
        """How far a letter is."""
        answer: t.TranscriptAnswer = self.call(
            "GET", f"/api/v1/widget/{self.segment(key)}/transcripts/{self.segment(request_id)}"
        )
        return answer

    def work_items_list(
        self,
        *,
        before: str | None = None,
        deployment: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        parent: str | None = None,
        reason: Literal[
            "approval_denied",
            "approval_expired",
            "execution_blocked_no_approval",
            "budget_exceeded",
            "verification_failed",
            "gate_blocked",
            "awaiting_review",
            "review_declined",
            "review_expired",
            "halted",
            "tool_failure",
            "effect_uncertain",
            "handed_over",
            "linkage_missing",
            "child_failed",
            "dependency_not_done",
            "left_out",
            "delivery_failed",
            "cancelled",
            "replanned",
        ]
        | None = None,
        session: str | None = None,
        status: Literal["pending", "running", "healthy", "done", "failed", "stuck", "blocked", "paused"] | None = None,
        type: Literal["task", "project", "goal"] | None = None,
    ) -> t.WorkItemsAnswer:
        """List tasks, projects and goals, newest first. The tasks of a project are listed by `parent`."""
        answer: t.WorkItemsAnswer = self.call(
            "GET",
            "/api/v1/work-items",
            query={
                "before": before,
                "deployment": deployment,
                "fields": fields,
                "limit": limit,
                "parent": parent,
                "reason": reason,
                "session": session,
                "status": status,
                "type": type,
            },
        )
        return answer

    def work_items_get(self, item_id: str, *, fields: str | None = None) -> t.WorkItemDetail:
        """Read an item with its plan, attempts, receipts and checks."""
        answer: t.WorkItemDetail = self.call(
            "GET", f"/api/v1/work-items/{self.segment(item_id)}", query={"fields": fields}
        )
        return answer

    def work_items_cancel(self, item_id: str, *, idempotency_key: str | None = None) -> t.WorkItemDetail:
        """Cancel a task or project: at once if nothing runs, else at its next call. What took effect stays."""
        answer: t.WorkItemDetail = self.call(
            "POST", f"/api/v1/work-items/{self.segment(item_id)}/cancel", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def work_items_resume(self, item_id: str, *, idempotency_key: str | None = None) -> t.WorkItemDetail:
        """Resume a parked goal with its whole budget."""
        answer: t.WorkItemDetail = self.call(
            "POST", f"/api/v1/work-items/{self.segment(item_id)}/resume", headers={"Idempotency-Key": idempotency_key}
        )
        return answer

    def secret_store(self, ref_id: str, body: t.SecretRequest) -> t.SecretStored:
        """A visitor gives what was asked for in secret, with their session token; or a member of staff, logged in,
        what a connection that is being set up asks for (apps.connections)."""
        answer: t.SecretStored = self.call("POST", f"/secrets/{self.segment(ref_id)}", body=body)
        return answer

    def widget_passage(
        self, document_id: str, key: str, *, end: int, start: int, version: str | None = None
    ) -> t.PassageAnswer:
        """The stored text around a citation, for the visitor whose level reaches it."""
        answer: t.PassageAnswer = self.call(
            "GET",
            f"/widget/v1/{self.segment(key)}/passage/{self.segment(document_id)}/",
            query={"end": end, "start": start, "version": version},
        )
        return answer
