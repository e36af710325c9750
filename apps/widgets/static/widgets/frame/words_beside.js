/* In which words does what is beside talking speak? The language is the frame's own (words.js). */

const en = {
  sheet: "More", back: "Back to the conversation", failed: "That did not work. Please try again.", often: "That was a lot at once. Please wait a while.", optional: "optional", nothing: "Nothing has been said here yet.",
  consent: "Before we talk", agree: "I agree", decline: "No, thank you", declined: "You have not agreed, so nothing was sent or stored. You can still agree at any time.", more: "Read more",
  begin: "Begin", choose: "Please choose", wrong_required: "Please fill this in.", wrong_too_long: "This is too long.", wrong_not_shown: "This has characters that cannot be shown.", wrong_email: "This is not an e-mail address.", wrong_choice: "Please choose one of these.", wrong_number: "This is not a number.", wrong_date: "This is not a day.",
  attach: "Send a file", again: "Try again", save: "Save {name}", fileKind: "Files of this kind are not taken here.", fileLarge: "This file is too large.", filesFull: "No more files can be taken in this conversation.", filesMany: "{n} files at a time, please.", fileGone: "This file is no longer there.",
  conversations: "Your conversations", fresh: "New conversation", loading: "Loading", none: "No earlier conversations.",
  transcript: "This conversation by e-mail", address: "E-mail address", send: "Send", sending: "Sending", owed: "It will be sent shortly.", sent: "Sent.", given_up: "It could not be sent to this address.",
  rating: "How was this conversation?", stars: "{score} of 5", up: "Good", down: "Not good", comment: "What should we know?", rate: "Send rating", thanks: "Thank you. You can change this for a day.", settled: "This rating can no longer be changed.",
};

const de = {
  sheet: "Mehr", back: "Zurück zum Gespräch", failed: "Das hat nicht geklappt. Bitte versuchen Sie es erneut.", often: "Das war viel auf einmal. Bitte warten Sie etwas.", optional: "freiwillig", nothing: "Hier wurde noch nichts gesagt.",
  consent: "Bevor wir sprechen", agree: "Ich stimme zu", decline: "Nein, danke", declined: "Sie haben nicht zugestimmt. Es wurde nichts gesendet und nichts gespeichert. Zustimmen können Sie jederzeit noch.", more: "Mehr lesen",
  begin: "Beginnen", choose: "Bitte wählen", wrong_required: "Bitte füllen Sie dies aus.", wrong_too_long: "Das ist zu lang.", wrong_not_shown: "Das enthält Zeichen, die nicht angezeigt werden können.", wrong_email: "Das ist keine E-Mail-Adresse.", wrong_choice: "Bitte wählen Sie eines davon.", wrong_number: "Das ist keine Zahl.", wrong_date: "Das ist kein Datum.",
  attach: "Datei senden", again: "Erneut versuchen", save: "{name} speichern", fileKind: "Dateien dieser Art nehmen wir hier nicht an.", fileLarge: "Diese Datei ist zu groß.", filesFull: "In diesem Gespräch können keine weiteren Dateien angenommen werden.", filesMany: "Bitte höchstens {n} Dateien auf einmal.", fileGone: "Diese Datei gibt es nicht mehr.",
  conversations: "Ihre Gespräche", fresh: "Neues Gespräch", loading: "Wird geladen", none: "Keine früheren Gespräche.",
  transcript: "Dieses Gespräch per E-Mail", address: "E-Mail-Adresse", send: "Senden", sending: "Wird gesendet", owed: "Es wird in Kürze gesendet.", sent: "Gesendet.", given_up: "An diese Adresse konnte es nicht gesendet werden.",
  rating: "Wie war dieses Gespräch?", stars: "{score} von 5", up: "Gut", down: "Nicht gut", comment: "Was sollten wir wissen?", rate: "Bewertung senden", thanks: "Danke. Sie können das einen Tag lang ändern.", settled: "Diese Bewertung kann nicht mehr geändert werden.",
};

const fr = {
  sheet: "Plus", back: "Retour à la conversation", failed: "Cela n'a pas fonctionné. Veuillez réessayer.", often: "Cela fait beaucoup à la fois. Veuillez patienter.", optional: "facultatif", nothing: "Rien n'a encore été dit ici.",
  consent: "Avant de parler", agree: "J'accepte", decline: "Non, merci", declined: "Vous n'avez pas accepté : rien n'a été envoyé ni enregistré. Vous pouvez encore accepter à tout moment.", more: "En savoir plus",
  begin: "Commencer", choose: "Veuillez choisir", wrong_required: "Veuillez remplir ce champ.", wrong_too_long: "C'est trop long.", wrong_not_shown: "Certains caractères ne peuvent pas être affichés.", wrong_email: "Ce n'est pas une adresse e-mail.", wrong_choice: "Veuillez choisir dans la liste.", wrong_number: "Ce n'est pas un nombre.", wrong_date: "Ce n'est pas une date.",
  attach: "Envoyer un fichier", again: "Réessayer", save: "Enregistrer {name}", fileKind: "Ce type de fichier n'est pas accepté ici.", fileLarge: "Ce fichier est trop volumineux.", filesFull: "Cette conversation ne peut plus recevoir de fichiers.", filesMany: "{n} fichiers à la fois au maximum.", fileGone: "Ce fichier n'existe plus.",
  conversations: "Vos conversations", fresh: "Nouvelle conversation", loading: "Chargement", none: "Aucune conversation précédente.",
  transcript: "Cette conversation par e-mail", address: "Adresse e-mail", send: "Envoyer", sending: "Envoi en cours", owed: "Elle sera envoyée sous peu.", sent: "Envoyée.", given_up: "L'envoi à cette adresse a échoué.",
  rating: "Comment s'est passée cette conversation ?", stars: "{score} sur 5", up: "Bien", down: "Pas bien", comment: "Que devrions-nous savoir ?", rate: "Envoyer l'avis", thanks: "Merci. Vous pouvez changer d'avis pendant un jour.", settled: "Cet avis ne peut plus être modifié.",
};

const es = {
  sheet: "Más", back: "Volver a la conversación", failed: "No ha funcionado. Inténtelo de nuevo.", often: "Ha sido mucho de una vez. Espere un momento.", optional: "opcional", nothing: "Aquí aún no se ha dicho nada.",
  consent: "Antes de hablar", agree: "Acepto", decline: "No, gracias", declined: "No ha aceptado, así que no se ha enviado ni guardado nada. Puede aceptar en cualquier momento.", more: "Leer más",
  begin: "Empezar", choose: "Elija, por favor", wrong_required: "Rellene este campo.", wrong_too_long: "Es demasiado largo.", wrong_not_shown: "Contiene caracteres que no se pueden mostrar.", wrong_email: "No es una dirección de correo.", wrong_choice: "Elija una de las opciones.", wrong_number: "No es un número.", wrong_date: "No es una fecha.",
  attach: "Enviar un archivo", again: "Reintentar", save: "Guardar {name}", fileKind: "Aquí no se aceptan archivos de este tipo.", fileLarge: "Este archivo es demasiado grande.", filesFull: "Esta conversación no admite más archivos.", filesMany: "{n} archivos a la vez como máximo.", fileGone: "Este archivo ya no existe.",
  conversations: "Sus conversaciones", fresh: "Nueva conversación", loading: "Cargando", none: "No hay conversaciones anteriores.",
  transcript: "Esta conversación por correo", address: "Correo electrónico", send: "Enviar", sending: "Enviando", owed: "Se enviará en breve.", sent: "Enviada.", given_up: "No se ha podido enviar a esta dirección.",
  rating: "¿Qué tal esta conversación?", stars: "{score} de 5", up: "Bien", down: "Mal", comment: "¿Qué deberíamos saber?", rate: "Enviar valoración", thanks: "Gracias. Puede cambiarla durante un día.", settled: "Esta valoración ya no se puede cambiar.",
};

const ar = {
  sheet: "المزيد", back: "العودة إلى المحادثة", failed: "لم ينجح ذلك. حاول مرة أخرى من فضلك.", often: "هذا كثير دفعة واحدة. انتظر قليلا من فضلك.", optional: "اختياري", nothing: "لم يُقل شيء هنا بعد.",
  consent: "قبل أن نتحدث", agree: "أوافق", decline: "لا، شكرا", declined: "لم توافق، لذلك لم يُرسل شيء ولم يُحفظ شيء. يمكنك الموافقة في أي وقت.", more: "اقرأ المزيد",
  begin: "ابدأ", choose: "اختر من فضلك", wrong_required: "املأ هذا الحقل من فضلك.", wrong_too_long: "هذا طويل جدا.", wrong_not_shown: "فيه رموز لا يمكن عرضها.", wrong_email: "هذا ليس عنوان بريد إلكتروني.", wrong_choice: "اختر واحدا مما يلي.", wrong_number: "هذا ليس رقما.", wrong_date: "هذا ليس تاريخا.",
  attach: "إرسال ملف", again: "حاول مرة أخرى", save: "حفظ {name}", fileKind: "لا نقبل هذا النوع من الملفات هنا.", fileLarge: "هذا الملف كبير جدا.", filesFull: "لا يمكن استلام ملفات أخرى في هذه المحادثة.", filesMany: "{n} ملفات في المرة الواحدة من فضلك.", fileGone: "لم يعد هذا الملف موجودا.",
  conversations: "محادثاتك", fresh: "محادثة جديدة", loading: "جار التحميل", none: "لا توجد محادثات سابقة.",
  transcript: "هذه المحادثة بالبريد الإلكتروني", address: "البريد الإلكتروني", send: "إرسال", sending: "جار الإرسال", owed: "سيتم الإرسال قريبا.", sent: "تم الإرسال.", given_up: "تعذر الإرسال إلى هذا العنوان.",
  rating: "كيف كانت هذه المحادثة؟", stars: "{score} من 5", up: "جيدة", down: "غير جيدة", comment: "ماذا ينبغي أن نعرف؟", rate: "إرسال التقييم", thanks: "شكرا. يمكنك تغييره خلال يوم.", settled: "لم يعد ممكنا تغيير هذا التقييم.",
};

const LANGUAGES = { en, de, fr, es, ar };

export function say(name, values = {}) {
  const [language] = document.documentElement.lang.split("-");
  return (LANGUAGES[language] || en)[name].replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}
