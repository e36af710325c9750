"""The REST API of automations (spec 003 REST, contract autonomy A8, B2).

Every member and API key may read; the services check who may change. Lists are newest first, with `limit` 50 by default
and clamped to 1..200; a foreign id is 404. An API key acts for an owner who opted in, and is named in the log.
"""
