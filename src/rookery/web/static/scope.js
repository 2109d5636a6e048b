// The tool-scope editor: finding tools, ticking many at once, and the default set. The server says what a list comes to.
(() => {
  const form = () => document.querySelector("form[data-scope]");
  const boxes = (root) => [...root.querySelectorAll('input[name="tool"]')];

  function count(root) {
    for (const group of root.querySelectorAll("[data-scope-group]")) {
      group.querySelector("[data-scope-count]").textContent = boxes(group).filter((box) => box.checked).length;
    }
  }
  function find(search) {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const root = search.form;
    let shown = 0;
    for (const group of root.querySelectorAll("[data-scope-group]")) {
      let here = 0;
      for (const row of group.querySelectorAll("[data-tool]")) {
        row.hidden = !words.every((word) => row.dataset.words.includes(word));
        if (!row.hidden) here += 1;
      }
      group.hidden = here === 0;
      shown += here;
    }
    root.querySelector("[data-scope-none]").hidden = shown > 0;
  }
  function kind(root, value) {
    const radio = root.querySelector(`input[name="list"][value="${value}"]`);
    if (radio) radio.checked = true;
  }
  function toDefault(root) {
    for (const box of boxes(root)) box.checked = box.hasAttribute("data-default");
  }
  function changed(root) {
    root.dispatchEvent(new Event("change", { bubbles: true }));
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-scope-search]")) find(event.target);
  });
  document.addEventListener("keydown", (event) => {
    // Enter in the search box finds; it does not save.
    if (event.key === "Enter" && event.target.matches("[data-scope-search]")) event.preventDefault();
  });
  document.addEventListener("change", (event) => {
    const root = event.target.closest?.("form[data-scope]");
    if (!root) return;
    if (event.target.name === "tool" && root.dataset.scope !== "profile") kind(root, "own");
    if (event.target.name === "list" && event.target.value === "default") toDefault(root);
    count(root);
  });
  document.addEventListener("click", (event) => {
    const tick = event.target.closest("[data-scope-tick]");
    if (tick) {
      const group = tick.closest("[data-scope-group]");
      for (const box of boxes(group)) {
        if (!box.closest("[data-tool]").hidden) box.checked = tick.dataset.scopeTick === "all";
      }
      if (form().dataset.scope !== "profile") kind(form(), "own");
      changed(form());
    }
    if (event.target.closest("[data-scope-default]")) {
      kind(form(), "default");
      toDefault(form());
      changed(form());
    }
  });
  document.addEventListener("htmx:after:swap", () => {
    const title = document.getElementById("explain-title");
    if (title && document.querySelector("#explain .layers") && !title.dataset.told) {
      title.dataset.told = "yes";
      title.focus({ preventScroll: true });
      title.scrollIntoView({ block: "nearest" });
    }
  });
  for (const each of document.querySelectorAll("[data-needs-script]")) each.hidden = false;
  for (const each of document.querySelectorAll("[data-hide-with-script]")) each.hidden = true;
  document.querySelector("[data-focus]")?.focus();
})();
