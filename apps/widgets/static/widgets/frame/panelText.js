/* Texts of the panels: consent, form, files, conversations, transcript, rating. The language is the frame's (i18n.js). */

const en = {
  sheet: "More", back: "Back to the conversation", failed: "Something went wrong. Please try again.", often: "Too many requests. Please wait a moment.", optional: "optional", nothing: "There are no messages yet.",
  consent: "Before we start", agree: "I agree", decline: "No, thanks", declined: "You haven't agreed, so nothing was sent or saved. You can still agree at any time.", more: "Read more",
  begin: "Start chat", choose: "Please choose", wrong_required: "Please fill this in.", wrong_too_long: "This is too long.", wrong_not_shown: "This contains characters that can't be displayed.", wrong_email: "Please enter a valid email address.", wrong_choice: "Please choose one of the options.", wrong_number: "Please enter a number.", wrong_date: "Please enter a valid date.",
  attach: "Send a file", again: "Try again", save: "Save {name}", fileKind: "This file type isn't supported.", fileLarge: "This file is too large.", filesFull: "You can't send any more files in this conversation.", filesMany: "You can send up to {n} files at a time.", fileGone: "This file is no longer available.",
  conversations: "Your conversations", fresh: "New conversation", loading: "Loading", none: "No earlier conversations.",
  transcript: "Email this conversation", address: "Email address", send: "Send", sending: "Sending", owed: "It will be sent shortly.", sent: "Sent.", given_up: "We couldn't send it to this address.",
  rating: "How was this conversation?", stars: "{score} of 5", up: "Good", down: "Not good", comment: "Anything you'd like to add?", rate: "Send rating", thanks: "Thank you. You can change your rating for 24 hours.", settled: "This rating can no longer be changed.",
};

const de = {
  sheet: "Mehr", back: "Zurück zum Gespräch", failed: "Das hat nicht geklappt. Bitte versuchen Sie es erneut.", often: "Zu viele Anfragen. Bitte warten Sie einen Moment.", optional: "freiwillig", nothing: "Es gibt noch keine Nachrichten.",
  consent: "Bevor es losgeht", agree: "Ich stimme zu", decline: "Nein, danke", declined: "Sie haben nicht zugestimmt. Es wurde nichts gesendet und nichts gespeichert. Zustimmen können Sie jederzeit noch.", more: "Mehr lesen",
  begin: "Chat starten", choose: "Bitte wählen", wrong_required: "Bitte füllen Sie dies aus.", wrong_too_long: "Das ist zu lang.", wrong_not_shown: "Das enthält Zeichen, die nicht angezeigt werden können.", wrong_email: "Das ist keine E-Mail-Adresse.", wrong_choice: "Bitte wählen Sie eine der Optionen.", wrong_number: "Das ist keine Zahl.", wrong_date: "Das ist kein Datum.",
  attach: "Datei senden", again: "Erneut versuchen", save: "{name} speichern", fileKind: "Dieser Dateityp wird nicht unterstützt.", fileLarge: "Diese Datei ist zu groß.", filesFull: "In diesem Gespräch können Sie keine weiteren Dateien senden.", filesMany: "Bitte höchstens {n} Dateien auf einmal.", fileGone: "Diese Datei ist nicht mehr verfügbar.",
  conversations: "Ihre Gespräche", fresh: "Neues Gespräch", loading: "Wird geladen", none: "Keine früheren Gespräche.",
  transcript: "Dieses Gespräch per E-Mail senden", address: "E-Mail-Adresse", send: "Senden", sending: "Wird gesendet", owed: "Es wird in Kürze gesendet.", sent: "Gesendet.", given_up: "An diese Adresse konnte es nicht gesendet werden.",
  rating: "Wie war dieses Gespräch?", stars: "{score} von 5", up: "Gut", down: "Nicht gut", comment: "Möchten Sie noch etwas ergänzen?", rate: "Bewertung senden", thanks: "Danke. Sie können Ihre Bewertung 24 Stunden lang ändern.", settled: "Diese Bewertung kann nicht mehr geändert werden.",
};

const fr = {
  sheet: "Plus", back: "Retour à la conversation", failed: "Une erreur s'est produite. Veuillez réessayer.", often: "Trop de demandes. Veuillez patienter un instant.", optional: "facultatif", nothing: "Il n'y a pas encore de messages.",
  consent: "Avant de commencer", agree: "J'accepte", decline: "Non, merci", declined: "Vous n'avez pas accepté : rien n'a été envoyé ni enregistré. Vous pouvez encore accepter à tout moment.", more: "En savoir plus",
  begin: "Démarrer la discussion", choose: "Veuillez choisir", wrong_required: "Veuillez remplir ce champ.", wrong_too_long: "C'est trop long.", wrong_not_shown: "Certains caractères ne peuvent pas être affichés.", wrong_email: "Ce n'est pas une adresse e-mail.", wrong_choice: "Veuillez choisir l'une des options.", wrong_number: "Ce n'est pas un nombre.", wrong_date: "Ce n'est pas une date.",
  attach: "Envoyer un fichier", again: "Réessayer", save: "Enregistrer {name}", fileKind: "Ce type de fichier n'est pas pris en charge.", fileLarge: "Ce fichier est trop volumineux.", filesFull: "Vous ne pouvez plus envoyer de fichiers dans cette conversation.", filesMany: "{n} fichiers à la fois au maximum.", fileGone: "Ce fichier n'est plus disponible.",
  conversations: "Vos conversations", fresh: "Nouvelle conversation", loading: "Chargement", none: "Aucune conversation précédente.",
  transcript: "Envoyer cette conversation par e-mail", address: "Adresse e-mail", send: "Envoyer", sending: "Envoi en cours", owed: "Elle sera envoyée sous peu.", sent: "Envoyée.", given_up: "L'envoi à cette adresse a échoué.",
  rating: "Comment s'est passée cette conversation ?", stars: "{score} sur 5", up: "Bien", down: "Pas bien", comment: "Souhaitez-vous ajouter quelque chose ?", rate: "Envoyer l'avis", thanks: "Merci. Vous pouvez modifier votre avis pendant 24 heures.", settled: "Cet avis ne peut plus être modifié.",
};

const es = {
  sheet: "Más", back: "Volver a la conversación", failed: "No ha funcionado. Inténtelo de nuevo.", often: "Demasiadas solicitudes. Espere un momento.", optional: "opcional", nothing: "Aún no hay mensajes.",
  consent: "Antes de empezar", agree: "Acepto", decline: "No, gracias", declined: "No ha aceptado, así que no se ha enviado ni guardado nada. Puede aceptar en cualquier momento.", more: "Leer más",
  begin: "Iniciar chat", choose: "Elija, por favor", wrong_required: "Rellene este campo.", wrong_too_long: "Es demasiado largo.", wrong_not_shown: "Contiene caracteres que no se pueden mostrar.", wrong_email: "No es una dirección de correo.", wrong_choice: "Elija una de las opciones.", wrong_number: "No es un número.", wrong_date: "No es una fecha.",
  attach: "Enviar un archivo", again: "Reintentar", save: "Guardar {name}", fileKind: "Este tipo de archivo no es compatible.", fileLarge: "Este archivo es demasiado grande.", filesFull: "No puede enviar más archivos en esta conversación.", filesMany: "{n} archivos a la vez como máximo.", fileGone: "Este archivo ya no está disponible.",
  conversations: "Sus conversaciones", fresh: "Nueva conversación", loading: "Cargando", none: "No hay conversaciones anteriores.",
  transcript: "Enviar esta conversación por correo", address: "Correo electrónico", send: "Enviar", sending: "Enviando", owed: "Se enviará en breve.", sent: "Enviada.", given_up: "No se ha podido enviar a esta dirección.",
  rating: "¿Qué tal esta conversación?", stars: "{score} de 5", up: "Bien", down: "Mal", comment: "¿Quiere añadir algo?", rate: "Enviar valoración", thanks: "Gracias. Puede cambiar su valoración durante 24 horas.", settled: "Esta valoración ya no se puede cambiar.",
};

const ar = {
  sheet: "المزيد", back: "العودة إلى المحادثة", failed: "حدث خطأ. حاول مرة أخرى من فضلك.", often: "طلبات كثيرة جدا. انتظر قليلا من فضلك.", optional: "اختياري", nothing: "لا توجد رسائل بعد.",
  consent: "قبل أن نبدأ", agree: "أوافق", decline: "لا، شكرا", declined: "لم توافق، لذلك لم يُرسل شيء ولم يُحفظ شيء. يمكنك الموافقة في أي وقت.", more: "اقرأ المزيد",
  begin: "بدء المحادثة", choose: "اختر من فضلك", wrong_required: "املأ هذا الحقل من فضلك.", wrong_too_long: "هذا طويل جدا.", wrong_not_shown: "فيه رموز لا يمكن عرضها.", wrong_email: "هذا ليس عنوان بريد إلكتروني.", wrong_choice: "اختر أحد الخيارات من فضلك.", wrong_number: "هذا ليس رقما.", wrong_date: "هذا ليس تاريخا.",
  attach: "إرسال ملف", again: "حاول مرة أخرى", save: "حفظ {name}", fileKind: "نوع الملف هذا غير مدعوم.", fileLarge: "هذا الملف كبير جدا.", filesFull: "لا يمكنك إرسال ملفات أخرى في هذه المحادثة.", filesMany: "{n} ملفات في المرة الواحدة من فضلك.", fileGone: "لم يعد هذا الملف متاحا.",
  conversations: "محادثاتك", fresh: "محادثة جديدة", loading: "جار التحميل", none: "لا توجد محادثات سابقة.",
  transcript: "إرسال هذه المحادثة بالبريد الإلكتروني", address: "البريد الإلكتروني", send: "إرسال", sending: "جار الإرسال", owed: "سيتم الإرسال قريبا.", sent: "تم الإرسال.", given_up: "تعذر الإرسال إلى هذا العنوان.",
  rating: "كيف كانت هذه المحادثة؟", stars: "{score} من 5", up: "جيدة", down: "غير جيدة", comment: "هل تود إضافة شيء؟", rate: "إرسال التقييم", thanks: "شكرا. يمكنك تغيير تقييمك خلال 24 ساعة.", settled: "لم يعد ممكنا تغيير هذا التقييم.",
};

const LANGUAGES = { en, de, fr, es, ar };

export function panelText(name, values = {}) {
  const [language] = document.documentElement.lang.split("-");
  return (LANGUAGES[language] || en)[name].replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}
