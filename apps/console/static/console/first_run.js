/* In which time zone is this company? As the browser of whoever sets it up says; without this script it can be set
   later. */

const field = document.querySelector("#id_timezone");
if (field && !field.value) field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
