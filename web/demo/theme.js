// Runs before the first paint, so that the theme does not flash: the chosen one, else the system's.
(function () {
  var theme = null;
  try {
    theme = localStorage.getItem("liveroom.theme");
  } catch (e) {
    // Storage may be forbidden; the system's theme holds then.
  }
  if (theme !== "light" && theme !== "dark") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
})();
