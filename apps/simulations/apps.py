from django.apps import AppConfig


class SimulationsConfig(AppConfig):
    name = "apps.simulations"
    label = "simulations"

    def ready(self) -> None:
        from apps.releases.simulation_gate import register_judge
        from apps.simulations import handlers  # noqa: F401  (registers bus handlers)
        from apps.simulations.release_judge import judge

        register_judge(judge)
