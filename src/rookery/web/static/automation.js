// Times of schedules in the reader's zone, the picture of a workflow that grows and shrinks, and forms that draw it.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  function localTimes() {
    for (const time of document.querySelectorAll("time[data-local]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.textContent = at.toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
      time.title = `${at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" })}`;
    }
    for (const each of document.querySelectorAll("[data-own-zone]")) each.textContent = zone;
    // Whoever is in the zone of the schedule needs no second time.
    for (const each of document.querySelectorAll("[data-elsewhere]")) each.hidden = each.dataset.elsewhere === zone;
  }

  // How large the picture is drawn; it stays so when a live part is fetched again.
  let scale = 1;
  function draw(graph) {
    const svg = graph.querySelector("svg.workflow");
    svg.setAttribute("width", Math.round(svg.dataset.width * scale));
    svg.setAttribute("height", Math.round(svg.dataset.height * scale));
  }
  function dress() {
    localTimes();
    for (const graph of document.querySelectorAll("[data-graph]")) {
      graph.querySelector(".graph-tools").hidden = false;
      if (scale !== 1) draw(graph);
    }
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) {
      const graph = button.closest("[data-graph]");
      const field = graph.querySelector(".graph-field");
      const svg = graph.querySelector("svg.workflow");
      if (button.dataset.zoom === "in") scale = Math.min(3, scale * 1.25);
      else if (button.dataset.zoom === "out") scale = Math.max(0.3, scale / 1.25);
      else scale = Math.max(0.3, Math.min(1, (field.clientWidth - 4) / svg.dataset.width));
      draw(graph);
      return;
    }
    const node = event.target.closest("a.node[data-node]");
    if (!node) return;
    const chooser = document.getElementById(`select-${node.dataset.node}`);
    const details = document.getElementById(`node-${node.dataset.node}`);
    if (chooser) {
      event.preventDefault();
      chooser.form.requestSubmit(chooser);
    } else if (details) {
      event.preventDefault();
      details.open = true;
      details.querySelector("summary").focus();
      details.scrollIntoView({ block: "nearest" });
    }
  });
  // Enter presses the button of the part that one is writing in.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("[data-editor] input")) return;
    const button = event.target.closest("fieldset, section")?.querySelector('button[type="submit"]');
    if (!button) return;
    event.preventDefault();
    button.click();
  });
  // The whole graph is in the form: a second step that is sent before the first has come back would undo it.
  let focused = "";
  document.addEventListener("htmx:before:request", (event) => {
    if (!event.target.matches?.("[data-editor]")) return;
    focused = document.activeElement?.id ?? "";
    event.target.inert = true;
  });
  document.addEventListener("htmx:finally:request", (event) => {
    const editor = document.querySelector("[data-editor]");
    if (!editor || event.target !== editor) return;
    editor.inert = false;
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
  });
  document.addEventListener("htmx:after:swap", () => {
    dress();
    for (const field of document.querySelectorAll("[data-clear]")) field.value = "";
  });
  dress();
})();
