from django.urls import path

from apps.safety.api import SafetyView

urlpatterns = [
    path("api/v1/safety/<slug:surface>", SafetyView.as_view(), name="safety"),
]
