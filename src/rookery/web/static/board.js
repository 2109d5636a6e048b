// The board: cards that are sent by the server, and moves that are shown at once and taken back if they are refused.
(() => {
  const FINAL = ["done", "cancelled"];
  const ASKED = ["blocked", ...FINAL];
  const waiting = new Map();
  const held = new Set();
  const column = (status) => document.querySelector(`.board-column[data-status="${status}"]`);
  const cards = (status) => document.getElementById(`cards-${status}`);
  const find = (id) => document.getElementById(`card-${id}`);
  const name = (status) => column(status)?.querySelector("h2").textContent ?? status;

  function announce(words) {
    const said = document.getElementById("board-said");
    if (said) said.textContent = words;
  }

  // What has the focus keeps it, wherever its card goes.
  function keepingFocus(card, change) {
    const active = card.contains(document.activeElement) ? document.activeElement : null;
    const kind = active && (active.closest("details.move") ? "details.move summary" : "a.card-title");
    const open = card.querySelector("details.move")?.open ?? false;
    const now = change() ?? card;
    const menu = now.querySelector("details.move");
    if (menu && open) menu.open = true;
    if (active && document.activeElement !== active) {
      (active.isConnected && now.contains(active) ? active : now.querySelector(kind) ?? now.querySelector("a.card-title"))?.focus({ preventScroll: true });
    }
  }

  function put(list, card) {
    const mine = card.dataset.order;
    const more = list.querySelector(":scope > .board-more");
    const after = [...list.querySelectorAll(":scope > .board-card")].find((each) => each !== card && each.dataset.order > mine);
    // Behind what has been loaded it would stand in the wrong place; it comes with the rest.
    if (!after && more) return card.remove();
    const before = after ?? null;
    if (card.parentElement === list && card.nextElementSibling === before) return;
    if (card.isConnected && list.moveBefore) list.moveBefore(card, before);
    else list.insertBefore(card, before);
  }

  function drawn(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.querySelector(".board-card");
  }

  function take(sent) {
    const list = cards(sent.status);
    const old = find(sent.id);
    if (!list) return old?.remove();
    const fresh = drawn(sent.html);
    if (!fresh) return;
    if (!old) {
      put(list, fresh);
      if (fresh.isConnected) window.htmx?.process(fresh);
      return;
    }
    keepingFocus(old, () => {
      for (const attribute of [...fresh.attributes]) old.setAttribute(attribute.name, attribute.value);
      if (!fresh.dataset.targets) old.removeAttribute("data-targets");
      old.removeAttribute("aria-busy");
      if (old.innerHTML !== fresh.innerHTML) old.replaceChildren(...fresh.childNodes);
      put(list, old);
    });
  }

  function count(counts) {
    let total = 0;
    for (const [status, number] of Object.entries(counts)) {
      total += number;
      const shown = document.querySelector(`[data-count="${status}"]`);
      if (shown && shown.textContent !== String(number)) shown.textContent = number;
      column(status)?.classList.toggle("is-empty", number === 0);
    }
    const all = document.getElementById("board-total");
    if (all && document.querySelectorAll(".board-column").length > 1) {
      all.textContent = all.textContent.replace(/^\S+ issues?/, `${total} issue${total === 1 ? "" : "s"}`);
    }
    if (total) document.querySelector("main > .empty")?.remove();
  }

  document.addEventListener("board", (event) => {
    const news = JSON.parse(event.detail.data);
    for (const sent of news.cards) {
      // A card in somebody's hand, or on its way to the server, changes when it has come to rest.
      if (held.has(sent.id)) waiting.set(sent.id, sent);
      else take(sent);
    }
    for (const id of news.gone) {
      if (held.has(id)) waiting.set(id, null);
      else find(id)?.remove();
    }
    count(news.counts);
    window.rookery?.refreshTimes(document.getElementById("board"));
  });

  function hold(card) {
    held.add(card.dataset.issue);
  }
  function release(id) {
    held.delete(id);
    if (!waiting.has(id)) return;
    const sent = waiting.get(id);
    waiting.delete(id);
    if (sent) take(sent);
    else find(id)?.remove();
  }

  function askReason(card, to) {
    const dialog = document.getElementById("move-dialog");
    const pull = card.querySelector(".card-marks .badge[title^='Pull request']")?.textContent ?? "";
    document.getElementById("move-words").textContent = `Move ${card.dataset.name} to ${name(to)}?`;
    const open = to === "done" && pull === "PR open" ? " Its pull request is closed without being merged." : "";
    document.getElementById("move-warning").textContent = FINAL.includes(to) ? `Nothing follows ${name(to)}: the issue cannot come back.${open}` : "";
    const reason = document.getElementById("move-reason");
    reason.value = "";
    dialog.returnValue = "";
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? reason.value : null), { once: true });
      dialog.showModal();
    });
  }

  function said(response) {
    try {
      return JSON.parse(response.headers.get("HX-Trigger") ?? "{}");
    } catch {
      return {};
    }
  }

  async function send(card, to, reason) {
    const form = document.getElementById("move");
    const body = new URLSearchParams(new FormData(form));
    body.set("move", `${card.dataset.issue} ${to}`);
    if (reason) body.set("reason", reason);
    try {
      const response = await fetch(form.action, { method: "POST", body, headers: { "HX-Request": "true" } });
      const words = said(response);
      if (response.headers.get("HX-Redirect")) window.location.assign(response.headers.get("HX-Redirect"));
      return response.ok ? { told: words.notice } : { refused: words.refused ?? "This did not work. Load the page again." };
    } catch {
      return { refused: "The server cannot be reached just now." };
    }
  }

  // Shown at once; what is refused goes back to where it was, with the reason.
  async function move(card, to) {
    const from = card.dataset.status;
    if (to === from || !(card.dataset.targets ?? "").split(" ").includes(to)) return false;
    const reason = ASKED.includes(to) ? await askReason(card, to) : "";
    if (reason === null) return false;
    const [place, list] = [card.nextElementSibling, card.parentElement];
    hold(card);
    keepingFocus(card, () => {
      card.setAttribute("aria-busy", "true");
      card.querySelector("details.move").open = false;
      cards(to).prepend(card);
    });
    card.dataset.status = to;
    const { told, refused } = await send(card, to, reason);
    card.removeAttribute("aria-busy");
    if (refused) {
      card.dataset.status = from;
      keepingFocus(card, () => list.insertBefore(card, place?.parentElement === list ? place : null));
      announce(`${card.dataset.name} stays in ${name(from)}. ${refused}`);
      window.rookery.say(refused, true);
    } else {
      // Until the server sends the card anew it must not offer where it can no longer go.
      card.removeAttribute("data-targets");
      announce(told ?? "");
      window.rookery.say(told);
    }
    release(card.dataset.issue);
    return !refused;
  }

  document.addEventListener("submit", (event) => {
    if (event.target.id !== "move") return;
    event.preventDefault();
    const [id, to] = (event.submitter?.value ?? "").split(" ");
    const card = find(id);
    if (card) move(card, to);
  });

  document.addEventListener("issue-made", () => {
    const made = document.getElementById("new-issue");
    made.open = false;
    made.querySelector("form").reset();
    made.querySelector("summary").focus();
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.id === "new-issue" && event.target.open) event.target.querySelector("input[name=title]").focus();
  }, true);

  window.rookeryBoard = { move, hold, release, announce, name, column };
})();
