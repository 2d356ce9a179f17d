/* Long tables: words to filter by, columns to choose from, headings to sort by. Works from disk; asks nothing.
   Tables in a .k3-browser have it all; plain ones of more than LONG rows sort, of more than LONGEST rows filter. */
(function () {
  "use strict";
  var t = window.k3t || function (text) { return text; };
  var LONG = 12;
  var LONGEST = 25;
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

  /* The rows of a table with their texts; a sum at the end is none of them. */
  function rowsOf(body) {
    return Array.prototype.filter.call(body.rows, function (row) {
      return !row.classList.contains("k3-total");
    }).map(function (row) {
      var texts = Array.prototype.map.call(row.cells, function (cell) { return cell.textContent.trim(); });
      return { row: row, texts: texts, all: texts.join(" ").toLowerCase() };
    });
  }

  /* Headings that sort: one click upwards, the next downwards, the third gives the first order back. */
  function sortable(heads, body, rows) {
    var sums = Array.prototype.filter.call(body.rows, function (row) { return row.classList.contains("k3-total"); });
    var sorted = { column: -1, down: false };

    heads.forEach(function (head, column) {
      var button = make("button", "k3-sort");
      button.type = "button";
      if (head.firstElementChild) {
        button.className += " k3-sort-beside";
        button.textContent = "\u2195";
        button.setAttribute("aria-label", t("Sort by {0}").replace("{0}", head.textContent.trim()));
      } else {
        button.textContent = head.textContent;
        head.textContent = "";
      }
      head.appendChild(button);
      button.addEventListener("click", function () { sort(column); });
    });

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
      sums.forEach(function (row) { body.appendChild(row); });
    }

    /* Cells that hold nothing, or no number where others do, stay last either way. */
    function compare(a, b) {
      var x = valueOf(a, sorted.column);
      var y = valueOf(b, sorted.column);
      if (x === null || y === null) { return x !== null ? -1 : y !== null ? 1 : 0; }
      var way = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return sorted.down ? -way : way;
    }
  }

  /* What a cell is sorted by: its exact value, the number that a cell of numbers begins with, or its text. */
  function valueOf(item, column) {
    var cell = item.row.cells[column];
    var text = item.texts[column];
    var exact = cell.getAttribute("data-sort");
    if (exact !== null) { return Number(exact); }
    if (!text) { return null; }
    if (!cell.classList.contains("k3-right") && !cell.classList.contains("text-right")) { return text; }
    var found = /[-\u2212]?\d[\d,]*(?:\.\d+)?/.exec(text);
    return found ? Number(found[0].replace(/,/g, "").replace("\u2212", "-")) : null;
  }

  /* A bar with a field for words, and with a choice for each heading that has one; it hides rows that do not fit. */
  function filters(bar, heads, rows, noun, example) {
    var words = make("input");
    var choices = [];
    var count = make("p", "k3-count");

    words.type = "search";
    if (example) { words.placeholder = t("e.g. {0}").replace("{0}", example); }
    words.autocomplete = "off";
    labelled(bar, t("Rows with all these words"), words);
    words.addEventListener("input", filter);
    heads.forEach(function (head, column) {
      if (head.hasAttribute("data-choose")) { choose(head, column); }
    });

    function choose(head, column) {
      var select = make("select");
      var seen = {};
      rows.forEach(function (item) { seen["=" + item.texts[column]] = item.texts[column]; });
      select.appendChild(option("", t("all")));
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
      count.textContent = t("{0} of {1} {2}").replace("{0}", shown).replace("{1}", rows.length).replace("{2}", noun);
    }

    count.setAttribute("role", "status");
    count.setAttribute("aria-live", "polite");
    bar.appendChild(count);
    filter();
  }

  function start(box) {
    var table = box.querySelector("table");
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    var rows = rowsOf(table.tBodies[0]);
    var bar = make("div", "k3-filters");
    filters(bar, heads, rows, box.getAttribute("data-noun"), box.getAttribute("data-example"));
    sortable(heads, table.tBodies[0], rows);
    box.insertBefore(bar, box.firstChild);
  }

  function plain(table) {
    if (table.closest(".k3-browser") || !table.tHead || table.tHead.rows.length !== 1 || table.tBodies.length !== 1) { return; }
    var rows = rowsOf(table.tBodies[0]);
    if (rows.length <= LONG) { return; }
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    var room = table.closest(".k3-scroll") && table.closest(".k3-scroll").previousElementSibling;
    if (rows.length > LONGEST && room && room.classList.contains("k3-words")) {
      var bar = make("div", "k3-filters");
      filters(bar, heads, rows, t("rows"), "");
      room.appendChild(bar);
    }
    sortable(heads, table.tBodies[0], rows);
  }

  Array.prototype.forEach.call(document.querySelectorAll(".k3-browser"), start);
  Array.prototype.forEach.call(document.querySelectorAll("table.k3-table"), plain);
}());
