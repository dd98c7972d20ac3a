// A form that is sent before its script listens would only load the page again, so its buttons wait for the script.
export function onSubmit(form, send) {
  form.addEventListener("submit", send);
  for (const button of form.querySelectorAll("button")) button.disabled = false;
}
