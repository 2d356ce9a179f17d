/* Equations in the note of a number, and on pages with so many of them that they are set as they come into view. The
   script that sets them is large, so it is fetched when the first one shows. */
(function () {
  "use strict";
  var folder = document.currentScript.src.replace(/[^/]*$/, "");
  var ready = null;

  function loaded() {
    if (window.MathJax && window.MathJax.startup) { return window.MathJax.startup.promise; }
    var promise = new Promise(function (done, failed) {
      var script = document.createElement("script");
      script.src = folder + "mathjax/tex-svg.js";
      script.onload = function () { window.MathJax.startup.promise.then(done); };
      script.onerror = failed;
      document.head.appendChild(script);
    });
    window.MathJax = {
      startup: { typeset: false, promise: promise },
      options: { processHtmlClass: "tex2jax_process|mathjax_process|math|output_area" }
    };
    return promise;
  }

  /* One call at a time, as MathJax asks. */
  window.k3typeset = function (elements) {
    ready = (ready || loaded()).then(function () { return window.MathJax.typesetPromise(elements); });
    return ready;
  };

  var equations = document.querySelectorAll("article .math");
  if (!equations.length || document.querySelector("script[src*='tex-svg']")) { return; }
  var watch = new IntersectionObserver(function (seen) {
    var near = seen.filter(function (one) { return one.isIntersecting; }).map(function (one) { return one.target; });
    near.forEach(function (element) { watch.unobserve(element); });
    if (near.length) { window.k3typeset(near); }
  }, { rootMargin: "300px" });
  equations.forEach(function (element) { watch.observe(element); });

  /* The rest when there is time, a few at once, so that the whole page can be printed; of the lists of numbers only what is seen. */
  var rest = Array.prototype.slice.call(equations);
  function more() {
    var some = rest.splice(0, 20).filter(function (element) { return !element.querySelector("mjx-container"); });
    some.forEach(function (element) { watch.unobserve(element); });
    (some.length ? window.k3typeset(some) : Promise.resolve()).then(function () {
      if (rest.length) { window.requestIdleCallback(more); }
    });
  }
  if (window.requestIdleCallback && !document.querySelector("dl.k3-list")) {
    window.addEventListener("load", function () { window.requestIdleCallback(more); });
  }
}());

/* The note beside a number: what it is, how it was made, from which sources. Works with mouse, keyboard and touch. */
(function () {
  "use strict";
  var t = window.k3t;
  var store = document.getElementById("k3-trails");
  if (!store) { return; }
  var trails = JSON.parse(store.textContent);
  var note = document.createElement("div");
  note.id = "k3-note";
  note.className = "k3-note";
  note.setAttribute("role", "tooltip");
  note.hidden = true;
  document.body.appendChild(note);
  var current = null;
  var leaving = 0;

  function line(tag, text, name) {
    var element = document.createElement(tag);
    element.textContent = text;
    if (name) { element.className = name; }
    note.appendChild(element);
    return element;
  }

  function place(link) {
    var box = link.getBoundingClientRect();
    var margin = 8;
    var left = Math.min(box.left, document.documentElement.clientWidth - note.offsetWidth - margin);
    var below = box.bottom + 4;
    var above = box.top - note.offsetHeight - 4;
    var fits = below + note.offsetHeight < window.innerHeight || above < 0;
    note.style.left = Math.max(margin, left) + window.scrollX + "px";
    note.style.top = (fits ? below : above) + window.scrollY + "px";
  }

  function show(link) {
    window.clearTimeout(leaving);
    if (current === link && !note.hidden) { return; }
    hide();
    var trail = trails[link.getAttribute("data-key")];
    if (!trail) { return; }
    note.textContent = "";
    line("strong", trail.value);
    line("div", trail.grade);
    if (trail.equation) { line("div", "\\(" + trail.equation + "\\)", "k3-note-equation"); }
    if (trail.inputs.length) { line("div", t("From: {0}", trail.inputs.join("; "))); }
    if (trail.sources.length) { line("div", t("Sources: {0}", trail.sources.join("; "))); }
    line("a", t("All details")).href = link.href;
    note.hidden = false;
    current = link;
    link.setAttribute("aria-describedby", note.id);
    place(link);
    if (trail.equation || note.textContent.indexOf("\\(") >= 0) {
      window.k3typeset([note]).then(function () {
        if (current === link) { place(link); }
      });
    }
  }

  function hide() {
    note.hidden = true;
    if (current) { current.removeAttribute("aria-describedby"); }
    current = null;
  }

  function later() {
    window.clearTimeout(leaving);
    leaving = window.setTimeout(hide, 150);
  }

  function number(event) {
    return event.target.closest ? event.target.closest("a.k3-number") : null;
  }

  document.addEventListener("mouseover", function (event) {
    var link = number(event);
    if (link) { show(link); } else if (note.contains(event.target)) { window.clearTimeout(leaving); }
  });
  document.addEventListener("mouseout", function (event) {
    if (number(event) || note.contains(event.target)) { later(); }
  });
  document.addEventListener("focusin", function (event) {
    var link = number(event);
    if (link) { show(link); }
  });
  document.addEventListener("focusout", later);

  /* A finger cannot hover: its first tap shows the note, the second one, or the note's own link, follows it. */
  var firstTap = null;
  document.addEventListener("pointerdown", function (event) {
    var link = number(event);
    firstTap = event.pointerType === "touch" && link && (current !== link || note.hidden) ? link : null;
    if (event.pointerType === "touch" && !link && !note.contains(event.target)) { hide(); }
  });
  document.addEventListener("click", function (event) {
    var link = number(event);
    if (link && link === firstTap) { event.preventDefault(); show(link); }
    firstTap = null;
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { hide(); }
  });
  window.addEventListener("resize", hide);
}());
