"""What may be asked over HTTP of what runs unattended? (spec 003 REST, contract autonomy A8, B2)

Reads are for every member and API key; what may be changed, the services say. Lists are newest first, `limit` 50 and
kept between 1 and 200; a foreign id is 404. An API key acts for an owner who allowed it, and is named in the log.
"""
