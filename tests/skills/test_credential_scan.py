"""A folder that contains a credential is not installed; one that only names where tokens come from is."""

from __future__ import annotations

import pytest

from apps.gates.detectors.credentials import holds_secret
from apps.skills.inspection import _holds_credential

ORDINARY = [
    'TOKEN_URL = "https://oauth2.googleapis.com/token"',
    'TOKEN_URL = "https://login.microsoftonline.com/common/oauth2/v2.0/token"',
    'token = "https://accounts.example.com/o/oauth2/v2/token"',
    'AUTHORIZE_URL = "https://accounts.google.com/o/oauth2/v2/auth"',
    '"token_uri": "https://oauth2.googleapis.com/token",',
    '"token_endpoint": "https://id.example.com/oauth2/v1/token"',
    'token_type = "Bearer"',
    'password_field = "password"',
    'password = "password"',
    'secret = "client_secret"',
    'token = "refresh_token"',
    'api_key = "x-api-key"',
    'token = "{access_token}"',
    'password = "<your-password>"',
    'token_endpoint_auth_method: "client_secret_basic"',
    'SECRET_NAME = "crm-oauth-client"',
]
GRAVE = [
    'TOKEN = "ghp_' + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5" + '"',
    'TOKEN_URL = "https://api.example.com/?token=aB3dE5fG7hI9jK1lM3nO5pQ7"',
    'TOKEN_URL = "https://user:hunter2-horse@api.example.com/token"',
    'password = "correct-horse-battery"',
    'api_key = "aB3dE5fG7hI9jK1lM3nO"',
    '"client_secret": "GOCSPX-aB3dE5fG7hI9jK1lM3nO"',
    'token = "xoxb-1234567890-abcdefghij"',
    '"password": "hunter2hunter"',
    'secret = "s3cr3t-value-of-mine"',
]


def found(text: str) -> bool:
    return _holds_credential(text) or holds_secret(text)


@pytest.mark.parametrize("line", ORDINARY)
def test_line_of_an_ordinary_oauth_skill_is_no_credential(line: str) -> None:
    assert found(line) is False


@pytest.mark.parametrize("line", GRAVE)
def test_credential_is_still_found(line: str) -> None:
    assert found(line) is True
