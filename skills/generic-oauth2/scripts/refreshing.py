"""A new access token for the refresh token that is held. Whoever rotates refresh tokens gets the new one kept."""

import time

import tokens

from silas_skill.account import Failure, format_moment, secrets


def refresh():
    held, asked_at = secrets(), time.time()
    if not held.get("refresh_token"):
        raise Failure("token_revoked", "There is nothing to refresh with: somebody has to sign in again.")
    grant = {"grant_type": "refresh_token", "refresh_token": held["refresh_token"]}
    until = tokens.keep(tokens.token(grant, held.get("client_secret", "")), asked_at, held)
    return {"success": True, "new_expires_at": format_moment(until)}
