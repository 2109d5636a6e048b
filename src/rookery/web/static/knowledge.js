// An upload that shows how far it is. Without this script the form is sent as a plain one.
(() => {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-upload]")) return;
    event.preventDefault();
    const shown = form.querySelector(".upload-progress");
    const bar = shown.querySelector("progress");
    const words = shown.querySelector("[role=status]");
    const button = form.querySelector("button[type=submit]");
    const request = new XMLHttpRequest();
    const end = (said) => {
      shown.hidden = true;
      button.disabled = false;
      window.rookery.say(said, true);
    };
    request.upload.addEventListener("progress", (told) => {
      if (!told.lengthComputable) return;
      bar.value = Math.round((100 * told.loaded) / told.total);
      words.textContent = bar.value < 100 ? `${bar.value} % sent` : "Sent. It is being read…";
    });
    request.addEventListener("load", () => {
      if (request.status < 300) {
        bar.value = 100;
        words.textContent = "It can be found now.";
        window.location.assign(request.response?.href ?? window.location.href);
        return;
      }
      end(request.response?.refused ?? "The upload was refused.");
    });
    request.addEventListener("error", () => end("The server cannot be reached just now."));
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    shown.hidden = false;
    bar.value = 0;
    words.textContent = "Sending…";
    button.disabled = true;
    request.send(new FormData(form));
  });
})();
