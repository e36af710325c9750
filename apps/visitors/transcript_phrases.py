"""The phrases of a transcript e-mail, by language of the widget."""

from __future__ import annotations

_WORDS = {
    "en": {
        "dir": "ltr",
        "subject": "Your conversation with {title}",
        "about": "Somebody asked in the chat of {title} for this conversation to be sent to you. If it was not you, "
        "nothing has to be done.",
        "you": "You",
        "person": "A colleague",
        "file": "File",
    },
    "de": {
        "dir": "ltr",
        "subject": "Ihr Gespräch mit {title}",
        "about": "Im Chat von {title} wurde darum gebeten, Ihnen dieses Gespräch zu senden. Waren Sie das nicht, ist "
        "nichts zu tun.",
        "you": "Sie",
        "person": "Unser Team",
        "file": "Datei",
    },
    "fr": {
        "dir": "ltr",
        "subject": "Votre conversation avec {title}",
        "about": "Dans le chat de {title}, l'envoi de cette conversation à votre adresse a été demandé. Si ce n'était "
        "pas vous, vous n'avez rien à faire.",
        "you": "Vous",
        "person": "Notre équipe",
        "file": "Fichier",
    },
    "es": {
        "dir": "ltr",
        "subject": "Su conversación con {title}",
        "about": "En el chat de {title} se pidió enviarle esta conversación. Si no fue usted, no tiene que hacer nada.",
        "you": "Usted",
        "person": "Nuestro equipo",
        "file": "Archivo",
    },
    "ar": {
        "dir": "rtl",
        "subject": "محادثتك مع {title}",
        "about": "طُلب في دردشة {title} إرسال هذه المحادثة إليك. إن لم تكن أنت من طلب ذلك فلا يلزمك فعل شيء.",
        "you": "أنت",
        "person": "فريقنا",
        "file": "ملف",
    },
}


def words_in(locale: str) -> dict[str, str]:
    language = locale[:2].lower()
    return {"lang": language if language in _WORDS else "en", **_WORDS.get(language, _WORDS["en"])}
