/* The quiz: reads a number as people write it, judges it, and says what it is off by. Works from disk; asks nothing. */
(function () {
  "use strict";
  var t = window.k3t;
  var store = document.getElementById("k3-quiz-data");
  if (!store) { return; }
  var data = JSON.parse(store.textContent);
  var forms = Array.prototype.slice.call(document.querySelectorAll("form.k3-question"));
  var score = document.querySelector(".k3-score");
  var restart = document.querySelector(".k3-restart");
  var OFF_BY = 0.01; /* how near a factor must be to be named */
  var KEY = "k3-quiz-" + data.name;
  var kept = recall();

  function recall() {
    try {
      var found = JSON.parse(window.localStorage.getItem(KEY));
      return found && typeof found === "object" ? found : {};
    } catch (error) { return {}; }
  }

  function remember() {
    try { window.localStorage.setItem(KEY, JSON.stringify(kept)); } catch (error) { /* then it is forgotten */ }
  }

  /* 1,234.5 · 1 234.5 · 1.2e3 · 12 GiB · full-width digits. Gives {value} in the answer's unit, or {fault}. */
  function read(text, answer) {
    var plain = text.normalize("NFKC").replace(/[\u2212\u2013]/g, "-").trim();
    if (!plain) { return { fault: t("Type a number first.") }; }
    var parts = /^([+-]?)((?:\d{1,3}(?:[, \u2019_]\d{3})+|\d+)?(?:\.\d*)?)(?:e([+-]?\d+))?\s*(.*)$/i.exec(plain);
    if (!parts || !/\d/.test(parts[2])) { return { fault: t("This does not start with a number. Write it as 1,234.5 or 1.2e3.") }; }
    if (/^,\s*\d/.test(parts[4])) { return { fault: t("Write a point for decimals; commas stand between thousands only.") }; }
    var value = Number(parts[1] + parts[2].replace(/[, \u2019_]/g, "") + (parts[3] ? "e" + parts[3] : ""));
    if (!isFinite(value)) { return { fault: t("This number is too large to be read.") }; }
    var factor = unit(parts[4], answer);
    if (factor === null) {
      var wrong = parts[4].slice(0, 20);
      return { fault: answer.unit === "1" ? t("The unit {0} does not fit. Write a bare number.", wrong)
        : t("The unit {0} does not fit. Leave it out, or write {1}.", wrong, answer.unit) };
    }
    return { value: value * factor };
  }

  /* How many of the answer's unit one of the written unit is; null for one that does not fit. */
  function unit(written, answer) {
    if (!written) { return 1; }
    var wanted = written.replace(/^\u03bcs/, "us").replace(/\.$/, "");
    var names = Object.keys(answer.units);
    var same = names.filter(function (name) { return name === wanted; });
    if (!same.length) {
      same = names.filter(function (name) { return name.toLowerCase() === wanted.toLowerCase(); });
    }
    if (!same.length) { /* one card, two cards */
      same = names.filter(function (name) { return name.replace(/s$/, "") === wanted.toLowerCase().replace(/s$/, ""); });
    }
    return same.length ? answer.units[same[0]] : null;
  }

  function near(value, wanted, tolerance) {
    return Math.abs(value - wanted) <= tolerance * Math.abs(wanted) + 1e-12;
  }

  /* {state, text}: right, near (off by a known slip or factor), wrong, or unread. */
  function judge(text, answer) {
    var given = read(text, answer);
    if (given.fault) { return { state: "unread", text: given.fault }; }
    if (near(given.value, answer.value, answer.tolerance)) {
      return { state: "right", text: t("Right: {0}.", answer.said) };
    }
    var slip = answer.slips.filter(function (one) { return near(given.value, one.value, answer.tolerance / 2); })[0];
    if (slip) { return { state: "near", text: t("Not yet. {0}", slip.words) }; }
    if (answer.value && given.value === -answer.value) { return { state: "near", text: t("Not yet: the sign.") }; }
    if (!given.value || !answer.value) { return { state: "wrong", text: t("Not yet. Try the hint.") }; }
    var ratio = given.value / answer.value;
    var off = answer.off.filter(function (one) {
      return near(ratio, one.factor, OFF_BY) || near(1 / ratio, one.factor, OFF_BY);
    })[0];
    if (off) {
      var factor = Number(off.factor.toPrecision(4)).toLocaleString("en");
      return { state: "near", text: ratio > 1 ? t("Not yet: too large by a factor of {0}; {1}.", factor, off.words)
        : t("Not yet: too small by a factor of {0}; {1}.", factor, off.words) };
    }
    return { state: "wrong", text: given.value > answer.value ? t("Not yet: too large. Try the hint.")
      : t("Not yet: too small. Try the hint.") };
  }

  function show(form, found) {
    var said = form.querySelector(".k3-said");
    form.setAttribute("data-state", found.state);
    said.textContent = found.text;
    form.querySelector("input").setAttribute("aria-invalid", found.state === "right" ? "false" : "true");
    form.querySelector(".k3-solution").hidden = found.state === "unread";
  }

  function count() {
    var right = forms.filter(function (form) { return form.getAttribute("data-state") === "right"; }).length;
    var tried = forms.filter(function (form) { return form.hasAttribute("data-state"); }).length;
    score.textContent = tried ? t("{0} of {1} right, {2} tried.", right, forms.length, tried)
      : t("{0} of {1} right.", right, forms.length);
    restart.hidden = !tried;
  }

  function start(form) {
    var id = form.getAttribute("data-id");
    var answer = data.answers[id];
    var field = form.querySelector("input");
    var hint = form.querySelector(".k3-hint");
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      var found = judge(field.value, answer);
      show(form, found);
      if (found.state !== "unread") { kept[id] = field.value.slice(0, 60); remember(); }
      count();
    });
    hint.addEventListener("click", function () {
      var words = document.getElementById(hint.getAttribute("aria-controls"));
      words.hidden = !words.hidden;
      hint.setAttribute("aria-expanded", String(!words.hidden));
    });
    if (typeof kept[id] === "string") {
      field.value = kept[id];
      show(form, judge(field.value, answer));
    }
  }

  restart.addEventListener("click", function () {
    kept = {};
    remember();
    forms.forEach(function (form) {
      form.reset();
      form.removeAttribute("data-state");
      form.querySelector("input").removeAttribute("aria-invalid");
      form.querySelector(".k3-said").textContent = "";
      form.querySelector(".k3-solution").hidden = true;
    });
    count();
    forms[0].querySelector("input").focus();
  });

  forms.forEach(start);
  count();
}());
