// Asks by keyboard: j and k move, the other keys press what the current ask offers. Not while somebody types.
(() => {
  const all = () => [...document.querySelectorAll("article.ask")];
  const current = () => document.activeElement?.closest("article.ask");

  function move(step) {
    const asks = all();
    if (!asks.length) return;
    const at = asks.indexOf(current());
    const next = asks[at < 0 ? 0 : Math.min(Math.max(at + step, 0), asks.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  function press(ask, key) {
    if (key === "x") return ask.querySelector(".ask-select input")?.click();
    if (/^[1-9]$/.test(key)) return ask.querySelector(`.ask-options button[value="${key}"]`)?.click();
    const found = ask.querySelector(`[data-key="${key}"]`);
    if (found?.matches("input")) found.focus();
    else found?.click();
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (event.key === "Escape" && typing) return event.target.closest("article.ask")?.focus();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      return move(event.key === "j" ? 1 : -1);
    }
    const ask = current() ?? (all().length === 1 ? all()[0] : null);
    if (ask && /^[adlxo1-9]$/.test(event.key)) {
      event.preventDefault();
      press(ask, event.key);
    }
  });

  function count() {
    const words = document.querySelector("[data-selected]");
    if (words) words.textContent = `${document.querySelectorAll(".ask-select input:checked").length} selected`;
  }
  document.addEventListener("change", (event) => event.target.closest(".ask-select") && count());
  document.addEventListener("htmx:after:swap", count);
})();
