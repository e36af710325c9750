"""The web process of the browser tests, which also handles the cards about a "thing" that tests open."""

from importlib import import_module

from silas_platform.asgi import application

import_module("tests.factories.approvals")  # after the platform, which loads the rooms

__all__ = ["application"]
