// Before the page is drawn, so that nobody who chose the dark theme sees a white flash first.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("edgequeues-theme");
  } catch {
    // storage is switched off in this browser: the system's theme it is
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
