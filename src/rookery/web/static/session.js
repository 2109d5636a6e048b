// A session as it happens. The server says what to put where; this puts it there, once, and follows the end of the page.
(() => {
  const transcript = document.getElementById("transcript");
  if (!transcript?.dataset.stream) return;
  const state = document.getElementById("stream-state");
  const find = (id) => document.getElementById(id);

  function made(html) {
    const template = document.createElement("template");
    template.innerHTML = html.trim();
    return template.content.firstElementChild;
  }

  function settle(element) {
    window.htmx?.process(element);
    window.rookery?.refreshTimes(element.parentElement ?? document);
  }

  const ops = {
    add(id, html) {
      if (find(id)) return;
      find("nothing-yet")?.remove();
      const piece = made(html);
      transcript.append(piece);
      settle(piece);
    },
    put(id, html) {
      const old = find(id);
      if (!old) return;
      const piece = made(html);
      old.replaceWith(piece);
      settle(piece);
    },
    text(id, words) {
      const place = find(id)?.querySelector(".flowing");
      if (place) place.append(words);
    },
    status(id, tool, words) {
      const calls = [...transcript.querySelectorAll(".call:has(.pulse)")];
      const call = find(id) ?? calls.reverse().find((each) => each.dataset.tool === tool);
      const line = call?.querySelector(".call-status");
      if (!line) return;
      line.textContent = words;
      line.hidden = !words;
    },
    over() {
      for (const pulse of transcript.querySelectorAll(".call-state:has(.pulse)")) {
        pulse.textContent = "not finished";
        pulse.closest(".call").querySelector(".call-status").hidden = true;
      }
    },
    tell(name) {
      document.body.dispatchEvent(new CustomEvent(name, { bubbles: true }));
    },
  };

  // Whoever has scrolled up to read is left there.
  let following = true;
  const toEnd = () => following && window.scrollTo({ top: document.documentElement.scrollHeight });
  window.addEventListener("scroll", () => {
    following = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 160;
  });
  document.addEventListener("htmx:after:swap", (event) => transcript.contains(event.target) && toEnd());
  function take(event) {
    for (const [name, ...rest] of JSON.parse(event.data)) ops[name]?.(...rest);
    after = event.lastEventId;
    toEnd();
  }

  let after = transcript.dataset.after;
  let wait = 500;
  function connect() {
    const source = new EventSource(`${transcript.dataset.stream}?after=${encodeURIComponent(after)}`);
    source.onopen = () => {
      wait = 500;
      transcript.dataset.connected = "yes";
      state.hidden = true;
    };
    source.onmessage = take;
    source.onerror = () => {
      // The browser comes back by itself, with the last id, unless the server has refused it.
      if (source.readyState !== EventSource.CLOSED) return;
      state.hidden = false;
      setTimeout(connect, wait);
      wait = Math.min(wait * 2, 15000);
    };
    window.addEventListener("pagehide", () => source.close(), { once: true });
  }
  connect();
  toEnd();

  // What was sent is cleared, and the next message has another id: the same one twice would be sent once.
  const form = document.querySelector("form[data-send]");
  document.body.addEventListener("sent", () => {
    form.reset();
    form.elements.message_id.value = `msg-${crypto.randomUUID?.() ?? Math.random().toString(36).slice(2)}`;
    form.elements.text.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.id === "send-text" && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
})();
