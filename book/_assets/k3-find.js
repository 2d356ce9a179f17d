/* Finds a number by words of its key, over all pages of numbers. */
(function () {
  "use strict";
  var box = document.querySelector(".k3-find");
  if (!box || !window.k3Numbers) { return; }
  var t = window.k3t || function (text) { return text; };
  var most = 50;
  var field = box.querySelector("input");
  var list = box.querySelector("ul");
  var all = [];
  Object.keys(window.k3Numbers).forEach(function (page) {
    window.k3Numbers[page].forEach(function (key) { all.push([key, page]); });
  });

  function item(text, address) {
    var line = document.createElement("li");
    if (address) {
      var link = document.createElement("a");
      link.href = address;
      link.textContent = text;
      line.appendChild(link);
    } else {
      line.textContent = text;
    }
    list.appendChild(line);
  }

  function find() {
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.textContent = "";
    if (!words.length) { return; }
    var found = all.filter(function (one) {
      return words.every(function (word) { return one[0].indexOf(word) >= 0; });
    });
    found.slice(0, most).forEach(function (one) {
      item(one[0], one[1] + ".html#n-" + one[0].replace(/\./g, "-"));
    });
    if (found.length > most) { item(t("{0} more; add a word").replace("{0}", (found.length - most).toLocaleString("en"))); }
    if (!found.length) { item(t("No key has these words")); }
  }

  field.addEventListener("input", find);
  box.hidden = false;
}());
