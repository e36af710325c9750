"""The console's addresses."""

from __future__ import annotations

from django.urls import path

from apps.console.views import activity, inbox, login, pages, review

urlpatterns = [
    path("", pages.start, name="console"),
    path("login/", login.log_in, name="console-login"),
    path("welcome/<str:who>/<str:token>/", login.welcome, name="console-welcome"),
    path("logout/", login.log_out, name="console-logout"),
    path("tenant/", login.change_tenant, name="console-tenant"),
    path("rail/", pages.rail, name="console-rail"),
    path("review/", review.review, name="console-review"),
    path("review/news/", review.queue_news, name="console-review-news"),
    path("review/<uuid:card_id>/", review.review, name="console-card"),
    path("review/<uuid:card_id>/news/", review.card_news, name="console-card-news"),
    path("review/<uuid:card_id>/decision/", review.decide, name="console-decide"),
    path("inbox/", inbox.inbox, name="console-inbox"),
    path("inbox/<uuid:session_id>/", inbox.inbox, name="console-conversation"),
    path("inbox/<uuid:session_id>/take-over/", inbox.take_over, name="console-take-over"),
    path("inbox/<uuid:session_id>/hand-back/", inbox.hand_back, name="console-hand-back"),
    path("inbox/<uuid:session_id>/reply/", inbox.reply, name="console-reply"),
    path("activity/", activity.activity, name="console-activity"),
    path("activity/<int:seq>/", activity.entry, name="console-entry"),
    path("activity/verify/", activity.verify, name="console-verify"),
    path("activity/export/", activity.export, name="console-export"),
]
