// Cards that are dragged, by mouse anywhere on the card, by touch at its grip so that a finger can still scroll.
(() => {
  const { move, hold, release } = window.rookeryBoard;
  const FAR = 6;
  const EDGE = 56;
  // Pixels a second, whatever the screen's rate: slow enough to let go over a narrow column.
  const [ACROSS, DOWN] = [360, 420];
  let drag = null;

  function begin() {
    const { card } = drag;
    const place = card.getBoundingClientRect();
    const ghost = card.cloneNode(true);
    ghost.removeAttribute("id");
    ghost.setAttribute("aria-hidden", "true");
    ghost.setAttribute("inert", "");
    ghost.classList.add("board-ghost");
    ghost.style.width = `${place.width}px`;
    Object.assign(drag, { ghost, dx: drag.x - place.left, dy: drag.y - place.top });
    document.body.append(ghost);
    document.body.classList.add("dragging-card");
    document.querySelector(".board").classList.add("dragging");
    card.classList.add("leaving");
    hold(card);
    for (const each of document.querySelectorAll(".board-column")) {
      const takes = drag.targets.includes(each.dataset.status);
      each.classList.toggle("takes", takes);
      each.classList.toggle("refuses", !takes && each.dataset.status !== card.dataset.status);
    }
    requestAnimationFrame(scroll);
  }

  function follow(x, y) {
    Object.assign(drag, { x, y });
    drag.ghost.style.transform = `translate(${x - drag.dx}px, ${y - drag.dy}px)`;
    const over = document.elementFromPoint(x, y)?.closest(".board-column") ?? null;
    if (over === drag.over) return;
    drag.over?.classList.remove("over");
    drag.over = over;
    if (over && drag.targets.includes(over.dataset.status)) over.classList.add("over");
  }

  // At the edges the board scrolls on, so that columns out of sight can be reached.
  function scroll(now) {
    if (!drag?.ghost) return;
    const seconds = Math.min(now - (drag.scrolled ?? now), 50) / 1000;
    drag.scrolled = now;
    const board = document.querySelector(".board");
    const place = board.getBoundingClientRect();
    const near = (from, to) => (drag.x < Math.max(from, 0) + EDGE ? -1 : drag.x > Math.min(to, innerWidth) - EDGE ? 1 : 0);
    board.scrollLeft += near(place.left, place.right) * ACROSS * seconds;
    const list = drag.over?.querySelector(".board-cards");
    if (list) {
      const edges = list.getBoundingClientRect();
      list.scrollTop += (drag.y < edges.top + 30 ? -1 : drag.y > edges.bottom - 30 ? 1 : 0) * DOWN * seconds;
    }
    follow(drag.x, drag.y);
    requestAnimationFrame(scroll);
  }

  function end(drops) {
    const { card, ghost, over, targets } = drag;
    drag = null;
    if (!ghost) return;
    ghost.remove();
    card.classList.remove("leaving");
    document.body.classList.remove("dragging-card");
    document.querySelector(".board").classList.remove("dragging");
    for (const each of document.querySelectorAll(".board-column")) each.classList.remove("takes", "refuses", "over");
    const to = over?.dataset.status;
    release(card.dataset.issue);
    if (!drops || !to || to === card.dataset.status) return;
    if (targets.includes(to)) return void move(card, to);
    const [from, there] = [card.dataset.status, to].map(window.rookeryBoard.name);
    window.rookery.say(`${card.dataset.name} cannot go from ${from} to ${there}.`, true);
  }

  document.addEventListener("pointerdown", (event) => {
    if (drag || event.button !== 0 || !event.isPrimary) return;
    const card = event.target.closest(".board-card[data-targets]");
    if (!card || event.target.closest("details.move, button")) return;
    if (event.pointerType !== "mouse" && !event.target.closest(".grip")) return;
    drag = { card, id: event.pointerId, x: event.clientX, y: event.clientY, over: null, targets: card.dataset.targets.split(" ") };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    if (!drag.ghost) {
      if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < FAR) return;
      begin();
    }
    event.preventDefault();
    follow(event.clientX, event.clientY);
  });
  document.addEventListener("pointerup", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    // The click that follows a drag must not open the card.
    if (drag.ghost) addEventListener("click", stopOnce, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", stopOnce, { capture: true }));
    end(true);
  });
  function stopOnce(event) {
    event.preventDefault();
    event.stopPropagation();
  }
  document.addEventListener("pointercancel", (event) => {
    if (drag && event.pointerId === drag.id) end(false);
  });
  document.addEventListener("dragstart", (event) => {
    if (event.target.closest?.(".board-card")) event.preventDefault();
  });
  document.addEventListener("selectstart", (event) => {
    if (drag?.ghost) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drag?.ghost) end(false);
  });
})();
