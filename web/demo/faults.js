// Says so when a script of the page breaks, so that nobody takes it for a server that does not answer. Plain old
// JavaScript, before any module: it must run where they do not.
(function () {
  var WORDS = {
    en: ["This page has broken down; it is not the server. Loading it again usually helps.", "Reload the page"],
    zh: ["页面自身出错，与服务器无关，重新加载通常即可恢复。", "重新加载页面"],
  };
  var said = false;
  function words() {
    var chosen = null;
    try {
      chosen = localStorage.getItem("liveroom.language");
    } catch (e) {
      // Storage may be forbidden; the browser's language holds then.
    }
    return WORDS[chosen || String(navigator.language).slice(0, 2)] || WORDS.en;
  }
  function say() {
    if (said) return;
    if (!document.body) return void document.addEventListener("DOMContentLoaded", say);
    said = true;
    var bar = document.createElement("p");
    var again = document.createElement("button");
    bar.className = "broken";
    bar.id = "broken";
    bar.setAttribute("role", "alert");
    bar.appendChild(document.createTextNode(words()[0] + " "));
    again.type = "button";
    again.textContent = words()[1];
    again.addEventListener("click", function () { location.reload(); });
    bar.appendChild(again);
    document.body.insertBefore(bar, document.body.firstChild);
  }
  addEventListener("error", function (event) {
    var from = event.target;
    // A picture that is missing breaks nothing, and Chrome reports a slow ResizeObserver as an error.
    if (from && from !== window && from.tagName !== "SCRIPT") return;
    if (/ResizeObserver/.test(event.message || "")) return;
    say();
  }, true);
  addEventListener("unhandledrejection", say);
})();
