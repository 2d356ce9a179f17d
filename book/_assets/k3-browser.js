/* Long tables: words to filter by, columns to choose from, headings to sort by. Works from disk; asks nothing. */
(function () {
  "use strict";
  var serial = 0;

  function make(tag, name, text) {
    var element = document.createElement(tag);
    if (name) { element.className = name; }
    if (text) { element.textContent = text; }
    return element;
  }

  function labelled(bar, text, control) {
    var group = make("div", "k3-filter");
    var label = make("label", "", text);
    serial += 1;
    control.id = "k3-filter-" + serial;
    label.htmlFor = control.id;
    group.appendChild(label);
    group.appendChild(control);
    bar.appendChild(group);
  }

  function start(box) {
    var table = box.querySelector("table");
    var body = table.tBodies[0];
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    var noun = box.getAttribute("data-noun");
    var rows = Array.prototype.map.call(body.rows, function (row) {
      var texts = Array.prototype.map.call(row.cells, function (cell) { return cell.textContent.trim(); });
      return { row: row, texts: texts, all: texts.join(" ").toLowerCase() };
    });
    var bar = make("div", "k3-filters");
    var words = make("input");
    var choices = [];
    var count = make("p", "k3-count");
    var sorted = { column: -1, down: false };

    words.type = "search";
    var example = box.getAttribute("data-example");
    if (example) { words.placeholder = "e.g. " + example; }
    words.autocomplete = "off";
    labelled(bar, "Rows with all these words", words);
    words.addEventListener("input", filter);

    heads.forEach(function (head, column) {
      if (head.hasAttribute("data-choose")) { choose(head, column); }
      var button = make("button", "k3-sort", head.textContent);
      button.type = "button";
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(column); });
    });

    function choose(head, column) {
      var select = make("select");
      var seen = {};
      rows.forEach(function (item) { seen["=" + item.texts[column]] = item.texts[column]; });
      select.appendChild(option("", "all"));
      Object.keys(seen).sort().forEach(function (key) {
        if (seen[key]) { select.appendChild(option(seen[key], seen[key])); }
      });
      select.addEventListener("change", filter);
      choices.push({ select: select, column: column });
      labelled(bar, head.textContent, select);
    }

    function option(value, text) {
      var element = make("option", "", text);
      element.value = value;
      return element;
    }

    function filter() {
      var wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      var shown = 0;
      rows.forEach(function (item) {
        var fits = wanted.every(function (word) { return item.all.indexOf(word) >= 0; }) &&
          choices.every(function (choice) {
            return !choice.select.value || item.texts[choice.column] === choice.select.value;
          });
        item.row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      count.textContent = shown + " of " + rows.length + " " + noun;
    }

    /* One click sorts upwards, the next downwards, the third gives the first order back. Empty cells stay last. */
    function sort(column) {
      if (sorted.column !== column) { sorted = { column: column, down: false }; }
      else if (!sorted.down) { sorted = { column: column, down: true }; }
      else { sorted = { column: -1, down: false }; }
      heads.forEach(function (head, i) {
        if (i === sorted.column) { head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending"); }
        else { head.removeAttribute("aria-sort"); }
      });
      var order = rows.slice();
      if (sorted.column >= 0) { order.sort(compare); }
      order.forEach(function (item) { body.appendChild(item.row); });
    }

    function compare(a, b) {
      var first = a.texts[sorted.column];
      var second = b.texts[sorted.column];
      if (!first || !second) { return first ? -1 : second ? 1 : 0; }
      var x = a.row.cells[sorted.column].getAttribute("data-sort");
      var y = b.row.cells[sorted.column].getAttribute("data-sort");
      var way = x !== null && y !== null ? Number(x) - Number(y) : first.localeCompare(second, "en", { numeric: true });
      return sorted.down ? -way : way;
    }

    count.setAttribute("role", "status");
    count.setAttribute("aria-live", "polite");
    bar.appendChild(count);
    box.insertBefore(bar, box.firstChild);
    filter();
  }

  Array.prototype.forEach.call(document.querySelectorAll(".k3-browser"), start);
}());
