// The board by keyboard: arrows go from card to card, Space picks one up, M opens its menu.
(() => {
  const { move, hold, release, announce, name, column } = window.rookeryBoard;
  const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
  let picked = null;

  const lists = () => [...document.querySelectorAll(".board-cards")];
  const cardsOf = (list) => [...list.querySelectorAll(":scope > .board-card")];

  function go(card, [across, down]) {
    const list = card.parentElement;
    const here = cardsOf(list);
    const at = here.indexOf(card);
    let next = down ? here[at + down] : null;
    if (across) {
      const all = lists();
      for (let to = all.indexOf(list) + across; to >= 0 && to < all.length && !next; to += across) {
        const there = cardsOf(all[to]);
        next = there[Math.min(at, there.length - 1)];
      }
    }
    next?.querySelector("a.card-title").focus();
    next?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function mark() {
    for (const each of document.querySelectorAll(".board-column")) {
      const status = each.dataset.status;
      const takes = picked !== null && picked.targets.includes(status);
      each.classList.toggle("takes", takes);
      each.classList.toggle("refuses", picked !== null && !takes && status !== picked.card.dataset.status);
      each.classList.toggle("over", picked !== null && status === picked.to);
    }
  }

  function pick(card) {
    const targets = (card.dataset.targets ?? "").split(" ").filter(Boolean);
    if (!targets.length) return announce(`${card.dataset.name} cannot be moved.`);
    picked = { card, targets, to: card.dataset.status };
    card.classList.add("picked");
    hold(card);
    mark();
    announce(`${card.dataset.name} is picked up. Left and right choose between ${targets.map(name).join(", ")}. Space puts it down, Escape leaves it.`);
  }

  function choose(step) {
    const order = [...document.querySelectorAll(".board-column")].map((each) => each.dataset.status);
    const open = order.filter((status) => picked.targets.includes(status) || status === picked.card.dataset.status);
    const at = open.indexOf(picked.to) + step;
    if (at < 0 || at >= open.length) return;
    picked.to = open[at];
    mark();
    column(picked.to).scrollIntoView({ block: "nearest", inline: "nearest" });
    announce(`To ${name(picked.to)}.`);
  }

  function drop(goes) {
    const { card, to } = picked;
    picked = null;
    card.classList.remove("picked");
    mark();
    release(card.dataset.issue);
    if (goes && to !== card.dataset.status) move(card, to);
    else announce(`${card.dataset.name} stays in ${name(card.dataset.status)}.`);
  }

  function whilePicked(event) {
    if (event.key === "ArrowLeft") choose(-1);
    else if (event.key === "ArrowRight") choose(1);
    else if (event.key === " " || event.key === "Enter") drop(true);
    else if (event.key === "Escape" || event.key === "Tab") return drop(false);
    else if (!(event.key in ARROWS)) return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const card = event.target.closest?.(".board-card");
    if (picked) return card === picked.card ? whilePicked(event) : drop(false);
    if (!card || !event.target.matches("a.card-title, details.move summary")) return;
    if (event.key in ARROWS) {
      event.preventDefault();
      go(card, ARROWS[event.key]);
    } else if (event.key === " " && event.target.matches("a.card-title")) {
      event.preventDefault();
      pick(card);
    } else if (event.key.toLowerCase() === "m") {
      const menu = card.querySelector("details.move");
      if (!menu) return announce(`${card.dataset.name} cannot be moved.`);
      event.preventDefault();
      menu.open = true;
      menu.querySelector("button").focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    const item = event.target.closest?.(".menu-item");
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!item || !step) return;
    event.preventDefault();
    const all = [...item.parentElement.querySelectorAll(".menu-item")];
    all[(all.indexOf(item) + step + all.length) % all.length].focus();
  });
})();
