// Says so when a script of the page breaks, so that nobody takes it for a server that does not answer. Plain old
// JavaScript, before any module: it must run where they do not. The server puts in the sections "faults" of internal/words/*.json.
(function () {
  var said = false;
  function words() {
    var chosen = null;
    try {
      chosen = localStorage.getItem("liveroom.language");
    } catch (e) {
      // Storage may be forbidden; the browser's language holds then.
    }
    var all = WORDS.faults;
    return all[chosen] || all[String(navigator.language).split("-")[0]] || all.en;
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
    bar.appendChild(document.createTextNode(words().broken + " "));
    again.type = "button";
    again.textContent = words().reload;
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
