// What changed between the making of a page and the first moment it listened was told to nobody: fetch that once.
(() => {
  const topics = document.currentScript.dataset.topics.split(" ");
  document.addEventListener(
    "htmx:sse:after:connection",
    () => {
      setTimeout(() => {
        for (const topic of topics) document.body.dispatchEvent(new CustomEvent(topic, { bubbles: true }));
      }, 400);
    },
    { once: true },
  );
})();
