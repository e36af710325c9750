/* Fills in the browser's time zone for the new company; without this script it can be set later. */

const field = document.querySelector("#id_timezone");
if (field && !field.value) field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
