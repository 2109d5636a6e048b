// Light or dark as the person chose, before anything is drawn.
(() => {
  const chosen = localStorage.getItem("rookery-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
