// What every page does: the form's token with each request, notices, questions before a change, times, copying, the menu.
(() => {
  const token = document.querySelector('meta[name="csrf"]')?.content ?? "";
  document.addEventListener("htmx:config:request", (event) => {
    const request = event.detail.ctx.request;
    if (request.method !== "GET") request.headers["X-CSRF-Token"] = token;
  });

  const notices = document.getElementById("notices");
  function say(words, refused = false) {
    if (!notices || !words) return;
    const notice = document.createElement("p");
    notice.className = refused ? "notice refused" : "notice";
    notice.textContent = words;
    if (refused) notice.setAttribute("role", "alert");
    notices.append(notice);
    setTimeout(() => notice.remove(), refused ? 12000 : 5000);
  }
  document.addEventListener("notice", (event) => say(event.detail?.value ?? event.detail));
  document.addEventListener("refused", (event) => say(event.detail?.value ?? event.detail, true));
  document.addEventListener("htmx:error", () => say("The server cannot be reached just now.", true));
  if (notices?.dataset.notice) say(decodeURIComponent(notices.dataset.notice));

  // A question before a change, in a dialog of ours, for htmx and for plain forms alike.
  const dialog = document.getElementById("confirm");
  function ask(words) {
    return new Promise((resolve) => {
      dialog.querySelector("#confirm-words").textContent = words;
      const answer = (event) => {
        const button = event.target.closest("button");
        if (event.type === "click" && !button) return;
        dialog.removeEventListener("click", answer);
        dialog.removeEventListener("cancel", answer);
        dialog.close();
        resolve(button?.value === "yes");
      };
      dialog.addEventListener("click", answer);
      dialog.addEventListener("cancel", answer);
      dialog.showModal();
    });
  }
  document.addEventListener("htmx:confirm", (event) => {
    event.preventDefault();
    const { ctx, issueRequest, dropRequest } = event.detail;
    ask(ctx.confirm).then((yes) => (yes ? issueRequest() : dropRequest()));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.ask || form.hasAttribute("hx-post") || form.dataset.asked) return;
    event.preventDefault();
    const submitter = event.submitter;
    ask(form.dataset.ask).then((yes) => {
      if (!yes) return;
      form.dataset.asked = "yes";
      form.requestSubmit(submitter);
    });
  });

  // Times: relative as they are read, exact in the reader's own zone when pointed at.
  const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "d"]];
  function relative(seconds) {
    const far = Math.abs(seconds);
    if (far < 5) return "now";
    const [, unit, name] = STEPS.find(([limit]) => far < limit);
    // What is gone is counted in full; what comes by the nearest: 8 h from a moment ago are still 8 h.
    if (seconds > 0) return `${Math.floor(far / unit)} ${name} ago`;
    return `in ${Math.ceil(far / unit - 0.5)} ${name}`;
  }
  function refreshTimes(root = document) {
    for (const time of root.querySelectorAll("time[datetime]:not([data-fixed])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.textContent = relative((Date.now() - at.getTime()) / 1000);
      time.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
    }
  }
  refreshTimes();
  setInterval(refreshTimes, 10000);
  document.addEventListener("htmx:after:swap", () => refreshTimes());

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const words = copy.dataset.copy || document.getElementById(copy.dataset.copyFrom)?.textContent || "";
      try {
        await navigator.clipboard.writeText(words);
        say("Copied.");
      } catch {
        say("This browser does not let pages copy; select the text instead.", true);
      }
      return;
    }
    if (event.target.closest("[data-theme-switch]")) {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("rookery-theme", root.dataset.theme);
      return;
    }
    const opener = event.target.closest(".menu-button");
    if (opener) {
      const open = document.body.classList.toggle("menu-open");
      opener.setAttribute("aria-expanded", String(open));
      return;
    }
    if (document.body.classList.contains("menu-open") && !event.target.closest("#menu")) closeMenu();
    for (const open of document.querySelectorAll("details.pop[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  function closeMenu() {
    document.body.classList.remove("menu-open");
    document.querySelector(".menu-button")?.setAttribute("aria-expanded", "false");
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    closeMenu();
    for (const open of document.querySelectorAll("details.pop[open]")) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  window.rookery = { say, ask, refreshTimes };
})();
