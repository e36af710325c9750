from django.apps import AppConfig


class Config(AppConfig):
    name = "tests.faults.versions.second"
    label = "versions"
