"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.inbox import actions, assistance, prompt_trace, questions, views

urlpatterns = [
    path("inbox/", views.inbox, name="console-inbox"),
    path("inbox/<uuid:session_id>/", views.inbox, name="console-conversation"),
    path("inbox/<uuid:session_id>/take-over/", views.take_over, name="console-take-over"),
    path("inbox/<uuid:session_id>/hand-back/", views.hand_back, name="console-hand-back"),
    path("inbox/<uuid:session_id>/reply/", views.reply, name="console-reply"),
    path("inbox/<uuid:session_id>/forget/", views.forget, name="console-forget"),
    path("inbox/<uuid:session_id>/ask/", questions.ask, name="console-ask"),
    path("inbox/<uuid:session_id>/ask/<uuid:card_id>/take-back/", questions.take_back, name="console-ask-back"),
    path("inbox/<uuid:session_id>/company/", views.show_viewers, name="console-lookers"),
    path("inbox/<uuid:session_id>/unread/", actions.mark_unread, name="console-mark-unread"),
    path("inbox/<uuid:session_id>/resolve/", actions.resolve, name="console-resolve"),
    path("inbox/<uuid:session_id>/reopen/", actions.reopen, name="console-reopen"),
    path("inbox/<uuid:session_id>/snooze/", actions.snooze, name="console-snooze"),
    path("inbox/<uuid:session_id>/assignee/", actions.assign, name="console-assign-conversation"),
    path("inbox/<uuid:session_id>/labels/", actions.mark, name="console-mark"),
    path("inbox/<uuid:session_id>/note/", actions.note, name="console-note"),
    path("inbox/<uuid:session_id>/assistance/", assistance.assist, name="console-assist"),
    path("inbox/<uuid:session_id>/assistance/<uuid:assistance_id>/", assistance.seen, name="console-assist-seen"),
    path(
        "inbox/<uuid:session_id>/assistance/<uuid:assistance_id>/cancel/",
        assistance.cancel,
        name="console-assist-cancel",
    ),
    path("inbox/several/", actions.several, name="console-several"),
    path("inbox/<uuid:session_id>/several/", actions.several, name="console-several-beside"),
    path("inbox/labels/", actions.labels, name="console-labels"),
    path("inbox/labels/save/", actions.save_label, name="console-label-new"),
    path("inbox/labels/<uuid:label_id>/save/", actions.save_label, name="console-label-save"),
    path("inbox/labels/<uuid:label_id>/delete/", actions.delete_label, name="console-label-delete"),
    path("inbox/replies/", actions.replies, name="console-replies"),
    path("inbox/replies/save/", actions.save_reply, name="console-canned-new"),
    path("inbox/replies/<uuid:reply_id>/save/", actions.save_reply, name="console-canned-save"),
    path("inbox/replies/<uuid:reply_id>/delete/", actions.delete_reply, name="console-canned-delete"),
    path("inbox/<uuid:session_id>/files/", views.send_file, name="console-send-file"),
    path("inbox/<uuid:session_id>/files/<uuid:file_id>/", views.open_file, name="console-file"),
    path("inbox/<uuid:session_id>/turn/<int:number>/", prompt_trace.seen, name="console-seen"),
]
