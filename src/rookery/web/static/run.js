// The steps of a run: what went in and came out is fetched when a step is opened, and again when more has come of it.
(() => {
  const loaded = new WeakMap();
  function load(step) {
    const address = step.dataset.detail;
    const place = step.querySelector(".detail");
    if (!address || !place || loaded.get(place) === address) return;
    loaded.set(place, address);
    window.htmx.ajax("GET", address, { target: place, swap: "innerHTML" });
  }
  document.addEventListener(
    "toggle",
    (event) => {
      if (event.target.matches?.("details.step") && event.target.open) load(event.target);
    },
    true,
  );
  document.addEventListener("htmx:after:swap", () => {
    for (const step of document.querySelectorAll("details.step[open]")) load(step);
  });
  // Up and down go from step to step, as in a list.
  document.addEventListener("keydown", (event) => {
    const here = event.target.closest?.("details.step > summary");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!here || !by) return;
    const all = [...document.querySelectorAll("details.step > summary")];
    const next = all[all.indexOf(here) + by];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
})();
