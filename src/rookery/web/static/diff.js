// The diff page: a click on a line's number brings the file's comment form to that line.
(() => {
  const narrow = matchMedia("(max-width: 48rem)");
  const here = new URL(location.href);
  if (narrow.matches && here.searchParams.get("view") === "split") {
    here.searchParams.set("view", "unified");
    location.replace(here);
    return;
  }
  const clear = () => {
    for (const row of document.querySelectorAll("table.diff tr.chosen")) row.classList.remove("chosen");
  };
  function putBack(form) {
    const home = form.closest(".diff-body, .diff-file");
    const row = form.closest("tr.note");
    home.append(form);
    row?.remove();
    form.open = false;
    form.querySelector("[data-line-cancel]").hidden = true;
    clear();
  }
  function bring(cell) {
    const home = cell.closest(".diff-body, .diff-file");
    const form = home?.querySelector("[data-line-form]");
    if (!form) return;
    if (form.closest("tr.note")) putBack(form);
    clear();
    const line = cell.closest("tr");
    line.classList.add("chosen");
    const row = document.createElement("tr");
    row.className = "note";
    const place = document.createElement("td");
    place.colSpan = [...line.children].reduce((sum, each) => sum + each.colSpan, 0);
    place.append(form);
    row.append(place);
    let after = line;
    while (after.nextElementSibling?.classList.contains("note")) after = after.nextElementSibling;
    after.after(row);
    form.open = true;
    form.querySelector('[name="line"]').value = cell.textContent.trim();
    form.querySelector('[name="side"]').value = cell.dataset.side;
    form.querySelector("[data-line-cancel]").hidden = false;
    form.querySelector("textarea").focus();
  }
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("table.diff td.n[data-side]");
    if (cell && cell.textContent.trim()) return bring(cell);
    const cancel = event.target.closest("[data-line-cancel]");
    if (cancel) return putBack(cancel.closest("[data-line-form]"));
    const link = event.target.closest('.diff-tree a[href^="#file-"]');
    if (link) document.getElementById(link.hash.slice(1))?.setAttribute("open", "");
  });
  if (narrow.matches) document.querySelector(".diff-tree")?.removeAttribute("open");
})();
