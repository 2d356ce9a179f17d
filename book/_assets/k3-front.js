/* Figures whose points can be asked: pointing at one, tapping near it or reaching it by the arrow keys shows its row. */
(function () {
  "use strict";
  var t = window.k3t || function (text) { return text; };
  var NEAR = 28;

  function make(tag, name, text) {
    var element = document.createElement(tag);
    if (name) { element.className = name; }
    if (text) { element.textContent = text; }
    return element;
  }

  function start(box) {
    var svg = box.querySelector("svg");
    var table = box.querySelector("table");
    var heads = Array.prototype.map.call(table.tHead.rows[0].cells, function (cell) { return cell.textContent.trim(); });
    var note = make("dl", "k3-front-note");
    var shown = -1;
    var points = Array.prototype.map.call(table.tBodies[0].rows, function (row, i) {
      return { mark: svg.querySelector('[id="k3-point-' + i + '"]'), cells: row.cells };
    }).filter(function (point) { return point.mark; });
    if (!points.length) { return; }

    note.hidden = true;
    note.setAttribute("aria-hidden", "true");
    var said = make("div", "k3-front-said");
    said.appendChild(note);
    said.appendChild(make("p", "k3-front-hint", t("Point at a mark, tap it, or use the arrow keys.")));
    box.insertBefore(said, svg.nextSibling);
    svg.setAttribute("role", "group");
    points.forEach(function (point, i) {
      point.mark.setAttribute("role", "img");
      point.mark.setAttribute("tabindex", i ? "-1" : "0");
      point.mark.setAttribute("aria-label", heads.map(function (head, k) {
        return head + ": " + point.cells[k].textContent.trim();
      }).join("; "));
      point.mark.addEventListener("focus", function () { show(i); });
      point.mark.addEventListener("blur", hide);
    });

    function show(i) {
      if (i === shown) { return; }
      hide();
      shown = i;
      points[i].mark.classList.add("k3-on");
      note.textContent = "";
      heads.forEach(function (head, k) {
        note.appendChild(make("dt", "", head));
        note.appendChild(make("dd", "", points[i].cells[k].textContent.trim()));
      });
      note.hidden = false;
      place(points[i].mark.getBoundingClientRect());
    }

    /* Beside the point, on the side with more room, and never out of the figure. */
    function place(mark) {
      var frame = box.getBoundingClientRect();
      var picture = svg.getBoundingClientRect();
      var left = mark.left + mark.width / 2 - frame.left;
      var wide = note.offsetWidth;
      var x = left > picture.width / 2 ? left - wide - 14 : left + 14;
      var y = mark.top - frame.top - note.offsetHeight / 2;
      note.style.left = Math.max(0, Math.min(x, frame.width - wide)) + "px";
      note.style.top = Math.max(0, Math.min(y, picture.height - note.offsetHeight)) + "px";
    }

    function hide() {
      if (shown >= 0) { points[shown].mark.classList.remove("k3-on"); }
      shown = -1;
      note.hidden = true;
    }

    function nearest(event) {
      var best = -1;
      var least = NEAR * NEAR;
      points.forEach(function (point, i) {
        var r = point.mark.getBoundingClientRect();
        var across = event.clientX - r.left - r.width / 2;
        var down = event.clientY - r.top - r.height / 2;
        if (across * across + down * down < least) { least = across * across + down * down; best = i; }
      });
      return best;
    }

    function ask(event) {
      var i = nearest(event);
      if (i >= 0) { show(i); } else { hide(); }
    }
    svg.addEventListener("pointermove", ask);
    svg.addEventListener("pointerdown", ask);
    svg.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") { hide(); } });

    svg.addEventListener("keydown", function (event) {
      var steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      var at = points.findIndex(function (point) { return point.mark === document.activeElement; });
      if (event.key === "Escape") { hide(); return; }
      if (at < 0 || !(event.key in steps || event.key === "Home" || event.key === "End")) { return; }
      var to = event.key === "Home" ? 0 : event.key === "End" ? points.length - 1 : at + steps[event.key];
      to = Math.max(0, Math.min(to, points.length - 1));
      points[at].mark.setAttribute("tabindex", "-1");
      points[to].mark.setAttribute("tabindex", "0");
      points[to].mark.focus();
      event.preventDefault();
    });
  }

  Array.prototype.forEach.call(document.querySelectorAll(".k3-front"), start);
}());
