/* The what-if page: reads the form, asks the model, shows the answers; keeps the settings in the address. */
(function () {
  "use strict";
  var box = document.getElementById("k3-whatif");
  if (!box || !window.K3WhatIf && typeof K3WhatIf === "undefined") { return; }
  var t = window.k3t || function (text) { return text; };
  var model = K3WhatIf;
  var facts = model.facts;
  var format = model.py.format;
  var GIB = 1024 * 1024 * 1024;
  var DAYS = 730 / 24;
  var NUMBERS = {};
  var CHOICES = {};
  var FIRST = facts.start;
  var COLOURS = { "routed experts": "#0072B2", "scales of the experts": "#56B4E9", "padding of the experts": "#CC79A7",
    "left for caches": "#009E73" };
  var WEIGHTS = "#E69F00";
  var RESERVES = "#999999";
  var run = 0;
  var state = null;

  each("[data-name]", function (input) {
    (input.tagName === "SELECT" ? CHOICES : NUMBERS)[input.getAttribute("data-name")] = input;
  });

  function each(selector, act) { Array.prototype.forEach.call(box.querySelectorAll(selector), act); }
  function out(name) { return box.querySelector('[data-out="' + name + '"]'); }
  function part(kind, name) { return box.querySelector("[data-" + kind + '="' + name + '"]'); }

  function make(tag, name, text) {
    var element = document.createElement(tag);
    if (name) { element.className = name; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }

  /* A sentence with values in it. */
  function say(pattern) {
    var values = Array.prototype.slice.call(arguments, 1);
    return model.py.say(pattern, values);
  }

  /* A number with about three figures, never in exponents. */
  function shown(x) {
    if (!isFinite(x)) { return t("never"); }
    var size = Math.abs(x);
    return format(x, size >= 100 ? ",.0f" : size >= 10 ? ",.1f" : ",.2f");
  }

  function span(r) { return shown(r.low) + "\u2013" + shown(r.high); }

  /* Which item of the prices a field sets, and the unit it is in. */
  function item_of(name, of) {
    var fixed = NUMBERS[name].getAttribute("data-item");
    if (fixed) { return fixed; }
    if (name === "servers") { return line_item(of, "own", "servers"); }
    if (name === "electricity") { return line_item(of, "own", "electricity"); }
    if (name === "rate") { return line_item(of, of.rent, "rent"); }
    return of.service + "." + { input: "input", cached_price: "cached", output: "output" }[name];
  }

  function line_item(of, way, line) {
    var like = facts.prices.bills.find(function (one) { return one.device === of.device && one.first; });
    if (!like || !like.ways[way]) { return ""; }
    var found = like.ways[way].map(function (at) { return facts.prices.lines[at]; })
      .find(function (one) { return one[0] === line; });
    return found ? found[1] : "";
  }

  var PRICED = ["fx", "servers", "electricity", "rate", "input", "cached_price", "output", "life", "capital"];
  var PLAIN = ["nodes", "nics", "memory_share", "max_model_len", "isl", "cached", "osl", "concurrency", "busy"];

  /* What we know of an item: [low, value, high, ..., unit]; null where there is none. */
  function known_of(item) {
    if (facts.prices.inputs[item]) { return facts.prices.inputs[item]; }
    var place = item.lastIndexOf(".");
    var offer = facts.services.offers[item.slice(0, place)];
    return offer ? offer[item.slice(place + 1)] : null;
  }

  function fresh() {
    var start = Object.assign({}, FIRST, { prices: {}, rent: "", service: Object.keys(facts.services.offers)[0] });
    start.rent = cheapest_rent(start);
    return start;
  }

  function cheapest_rent(of) {
    var best = "";
    var least = Infinity;
    model.rental_classes(of).forEach(function (way) {
      var month = model.cost_of(asked_of(of), way, null, {}).month.value;
      if (month < least) { least = month; best = way; }
    });
    return best;
  }

  function asked_of(of) {
    return Object.assign({}, of, { prices: Object.assign({}, of.prices, { utilisation: of.busy }) });
  }

  function field_of(item, of) { return PRICED.find(function (name) { return item_of(name, of) === item; }); }
  function own(object, name) { return Object.prototype.hasOwnProperty.call(object, name); }

  /* The address: every setting by name, prices only where the reader set them. */
  function address(of) {
    var pairs = Object.keys(CHOICES).concat(PLAIN).map(function (name) {
      return name + "=" + encodeURIComponent(of[name]).replace(/%2C/g, ",").replace(/%40/g, "@");
    });
    Object.keys(of.prices).sort().forEach(function (item) {
      if (field_of(item, of)) { pairs.push("price." + encodeURIComponent(item).replace(/%40/g, "@") + "=" + of.prices[item]); }
    });
    return "#" + pairs.join("&");
  }

  /* Settings out of an address; what cannot be used is left as it was and named. */
  function from_address(hash) {
    var found = fresh();
    var refused = [];
    hash.replace(/^#/, "").split("&").filter(Boolean).slice(0, 64).forEach(function (pair) {
      var at = pair.indexOf("=");
      var name = at < 0 ? pair : pair.slice(0, at);
      var text = at < 0 ? "" : pair.slice(at + 1);
      try { name = decodeURIComponent(name); text = decodeURIComponent(text); } catch (error) { text = ""; }
      if (!take(found, name, text)) { refused.push(name.slice(0, 24)); }
    });
    settle(found, hash);
    if (!own(facts.classes, found.rent) || model.rental_classes(found).indexOf(found.rent) < 0) {
      found.rent = cheapest_rent(found);
    }
    return { settings: found, refused: refused };
  }

  /* A workload that the address names brings its own tokens, unless the address has others. */
  function settle(found, hash) {
    var named = facts.workloads[found.workload];
    if (!named) { return; }
    var given = ["isl", "osl", "cached"].filter(function (name) { return hash.indexOf(name + "=") >= 0; });
    ["isl", "osl", "cached", "concurrency"].forEach(function (name) {
      if (name in named && !given.length && hash.indexOf(name + "=") < 0) { found[name] = named[name]; }
    });
    if (given.some(function (name) { return found[name] !== named[name]; })) { found.workload = "own"; }
  }

  function take(found, name, text) {
    if (PLAIN.indexOf(name) >= 0) {
      if (fault_of(NUMBERS[name], text)) { return false; }
      found[name] = Number(text);
      return true;
    }
    if (name.indexOf("price.") === 0) {
      var item = name.slice(6);
      var field = item && field_of(item, found);
      if (!field || fault_of(NUMBERS[field], text)) { return false; }
      found.prices[item] = Number(text);
      return true;
    }
    if (name === "layout" && /^[a-z0-9,]{1,40}$/.test(text)) { found.layout = text; return true; }
    if (!own(CHOICES, name) || name === "layout") { return false; }
    var allowed = { device: facts.cards, engine: facts.engines, service: facts.services.offers, rent: facts.classes,
      workload: Object.assign({ own: 1 }, facts.workloads) }[name];
    if (text === "" && name === "rent") { return true; }
    if (!own(allowed, text)) { return false; }
    found[name] = text;
    return true;
  }

  /* Why a number cannot be used; empty where it can. */
  function fault_of(input, text) {
    var least = Number(input.getAttribute("data-least"));
    var most = Number(input.getAttribute("data-most"));
    if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,2})?$/i.test(text.trim())) { return t("Write a number."); }
    var value = Number(text);
    if (!(value >= least && value <= most)) {
      return say(t("Must be from {0} to {1}."), format(least, least >= 1e3 ? "," : "g"), format(most, most >= 1e3 ? "," : "g"));
    }
    if (input.getAttribute("data-whole") === "1" && value !== Math.floor(value)) { return t("Must be a whole number."); }
    return "";
  }

  function tell(name, text) {
    part("fault", name).textContent = text;
    var input = NUMBERS[name] || CHOICES[name];
    if (text) { input.setAttribute("aria-invalid", "true"); } else { input.removeAttribute("aria-invalid"); }
  }

  /* The layouts of these cards in the select; another is chosen where the wanted one is none of them. */
  function offer_layouts(of) {
    var all = model.layouts_of(of);
    var note = "";
    if (all.indexOf(of.layout) < 0) {
      var wanted = of.layout;
      of.layout = best_layout(of, all);
      note = say(t("{0} {1} was chosen."), why_not(of, wanted), of.layout);
    }
    var select = CHOICES.layout;
    select.textContent = "";
    all.forEach(function (text) {
      var option = make("option", "", text);
      option.value = text;
      select.appendChild(option);
    });
    return note;
  }

  function why_not(of, layout) {
    try {
      model.plan_of(Object.assign({}, of, { layout: layout }));
      return say(t("{0} is not among the layouts that the book tries."), layout);
    } catch (error) {
      if (!(error instanceof model.py.Refused)) { throw error; }
      return t("{0}.", error.message);
    }
  }

  function best_layout(of, all) {
    var best = facts.best[of.device + " " + of.nodes + " " + of.engine] || {};
    if (all.indexOf(best[of.workload]) >= 0) { return best[of.workload]; }
    var found = model.roomiest(of);
    return found ? found.layout : all[0];
  }

  function fill_classes(of) {
    var select = CHOICES.rent;
    var ways = model.rental_classes(of);
    select.textContent = "";
    if (ways.indexOf(of.rent) < 0) { of.rent = cheapest_rent(of); }
    ways.forEach(function (way) {
      var option = make("option", "", t(facts.classes[way]));
      option.value = way;
      select.appendChild(option);
    });
    if (!ways.length) { select.appendChild(make("option", "", t("no rent is published"))); select.firstChild.value = ""; }
  }

  /* The whole form from the settings. */
  function fill(of) {
    var note = offer_layouts(of);
    fill_classes(of);
    Object.keys(CHOICES).forEach(function (name) { CHOICES[name].value = of[name]; tell(name, ""); });
    PLAIN.forEach(function (name) { put(name, of[name]); });
    PRICED.forEach(function (name) {
      var item = item_of(name, of);
      var known = item ? known_of(item) : null;
      NUMBERS[name].disabled = !known;
      var slider = part("slider", name);
      if (slider && known && !NUMBERS[name].getAttribute("data-item")) {  /* from nothing to a few times our own price */
        var step = Math.pow(10, Math.floor(Math.log10(known[1] || 1)) - 1);
        slider.max = Math.ceil(2.5 * (known[1] || 1) / step) * step;
        slider.step = step / 10;
      }
      put(name, known ? (item in of.prices ? of.prices[item] : known[1]) : "");
      if (!NUMBERS[name].getAttribute("data-item")) { part("unit", name).textContent = known ? t(known[4]) : t("no price is published"); }
    });
    var size = facts.cards[of.device].cards_per_node;
    part("unit", "nodes").textContent = say(t("of {0} cards"), size);
    return note;
  }

  function put(name, value) {
    NUMBERS[name].value = value;
    var slider = part("slider", name);
    if (slider) {
      slider.value = slider.getAttribute("data-powers") === "1" ? Math.log2(Math.max(1, value)) : value;
      slider.disabled = NUMBERS[name].disabled;
    }
    tell(name, "");
  }

  /* The settings as the form has them; null with a message beside the field where one cannot be used. */
  function read() {
    var found = Object.assign({}, state, { prices: Object.assign({}, state.prices) });
    var good = true;
    Object.keys(CHOICES).forEach(function (name) { found[name] = CHOICES[name].value; });
    Object.keys(NUMBERS).forEach(function (name) {
      var input = NUMBERS[name];
      if (input.disabled) { return; }
      var fault = fault_of(input, input.value);
      tell(name, fault);
      if (fault) { good = false; return; }
      var value = Number(input.value);
      if (PLAIN.indexOf(name) >= 0) { found[name] = value; return; }
      var item = item_of(name, found);
      if (item_of(name, state) !== item) { return; }
      if (known_of(item)[1] === value) { delete found.prices[item]; } else { found.prices[item] = value; }
    });
    if (good && found.cached >= found.isl) {
      tell("cached", t("Must be less than the prompt: one token at least is read."));
      good = false;
    }
    if (good && found.isl + found.osl > found.max_model_len) {
      tell("max_model_len", say(t("Requests have {0} tokens; give at least as many."), format(found.isl + found.osl, ",")));
      good = false;
    }
    return good ? found : null;
  }

  /* A change in one field may change others: cards their layouts, a workload its tokens. */
  function changed(name) {
    var found = read();
    if (!found) { box.classList.add("k3-stale"); run += 1; return; }
    if (name === "workload" && found.workload !== "own") {
      Object.assign(found, facts.workloads[found.workload]);
      delete found.label;
      found.max_model_len = Math.max(found.max_model_len, found.isl + found.osl);
      var best = facts.best[found.device + " " + found.nodes + " " + found.engine] || {};
      found.layout = best[found.workload] || found.layout;
    }
    var named = facts.workloads[found.workload];
    if (named && ["isl", "osl", "cached"].some(function (one) { return named[one] !== found[one]; })) { found.workload = "own"; }
    if (name === "engine" && found.memory_share === default_share(state)) { found.memory_share = default_share(found); }
    apply(found, true);
  }

  function default_share(of) { return facts.engines[of.engine].utilisation.value; }

  function apply(of, keep) {
    state = of;
    var focused = document.activeElement;
    var text = focused && focused.getAttribute && focused.getAttribute("data-name") && focused.tagName === "INPUT" ? focused.value : null;
    var note = fill(state);
    if (text !== null && Number(text) === Number(focused.value)) { focused.value = text; }
    out("note").textContent = note;
    if (keep) { window.history.replaceState(null, "", address(state)); }
    answer();
  }

  /* The answers: what is quick at once, then the ranges, a run at a time so that the page stays awake. */
  function answer() {
    run += 1;
    var mine = run;
    var asked = asked_of(state);
    box.classList.remove("k3-stale");
    try {
      var plan = model.plan_of(asked);
      show_plan(plan);
    } catch (error) {
      refuse(error);
      return;
    }
    if (!plan.fits) { show_speed(null, null, plan); show_costs(asked, null); finish(asked, plan, null, null); return; }
    var question;
    var served;
    try {
      question = model.question_of(plan, asked);
      served = model.answer(question, {});
    } catch (error) {
      refuse(error);
      return;
    }
    var values = { output_tps: only(served.output_tps), tpot_ms: only(served.tpot_ms), ttft_ms: only(served.ttft_mean_ms) };
    show_speed(values, question, plan);
    show_costs(asked, values.output_tps);
    box.setAttribute("aria-busy", "true");
    var steps = model.ranges_of(question, served);
    var step = function () {
      if (mine !== run) { return; }
      var until = Date.now() + 40;
      var next;
      do { next = steps.next(); } while (!next.done && Date.now() < until);
      if (!next.done) { window.setTimeout(step, 0); return; }
      box.removeAttribute("aria-busy");
      show_speed(next.value, question, plan);
      finish(asked, plan, next.value, show_costs(asked, next.value.output_tps));
    };
    window.setTimeout(step, 0);
  }

  function only(value) { return { value: value, low: null, high: null }; }

  /* What the library refuses: in its words, and nothing else beside it. */
  function refuse(error) {
    if (!(error instanceof model.py.Refused)) { throw error; }
    box.removeAttribute("aria-busy");
    verdict(false, t("Cannot be served."), error.message);
    show_speed(null, null, null);
    show_costs(asked_of(state), null);
    out("said").textContent = error.message;
    ready();
  }

  function verdict(good, word, reason) {
    var line = out("verdict");
    line.textContent = word;
    line.setAttribute("data-good", good ? "yes" : "no");
    out("reason").textContent = reason;
  }

  function show_plan(plan) {
    verdict(plan.fits, plan.fits ? t("Fits.") : t("Does not fit."), plan.reason);
    var ledger = out("ledger");
    ledger.textContent = "";
    groups(plan).forEach(function (group) { ledger.appendChild(bar_of(plan, group)); });
    ledger.appendChild(legend(plan));
    var tight = plan.stages[plan.tightest];
    var rows = tight.lines.map(function (line) { return [t(line.name), gib(line.bytes), line.low === line.high ? "" : gib(line.low) + "\u2013" + gib(line.high)]; });
    rows.push([t("left for caches"), gib(tight.free[0]), gib(tight.free[1]) + "\u2013" + gib(tight.free[2])]);
    var held = out("held");
    held.textContent = "";
    var more = make("details");
    more.appendChild(make("summary", "", say(t("All lines of a card of stage {0}"), tight.number)));
    more.appendChild(table([t("Line"), t("GiB"), t("Range, GiB")], rows));
    held.appendChild(more);
    if (plan.caches) {
      held.appendChild(make("p", "", say(t("The caches hold {0} tokens; {1} requests of {2} tokens run at once on each of {3} copies."),
        format(plan.caches.kv_tokens, ","), format(Math.min(plan.caches.max_running_requests, Math.floor(plan.caches.max_concurrency)), ","),
        format(plan.settings.max_model_len, ","), format(plan.copies, ","))));
    }
  }

  function gib(bytes) { return format(bytes / GIB, ",.1f"); }

  /* Stages that hold the same stand together. */
  function groups(plan) {
    var found = [];
    plan.stages.forEach(function (stage) {
      var key = stage.lines.map(function (line) { return line.bytes; }).join();
      var last = found.find(function (one) { return one.key === key; });
      if (last) { last.numbers.push(stage.number); } else { found.push({ key: key, stage: stage, numbers: [stage.number] }); }
    });
    return found;
  }

  function kind_of(line) {
    if (line.passing) { return null; }
    if (COLOURS[line.name]) { return line.name; }
    return ["split weights", "token tables", "copied weights", "padding of projections", "shared experts and dense MLPs"]
      .indexOf(line.name) >= 0 ? "other weights" : "working memory";
  }

  var KINDS = ["routed experts", "scales of the experts", "padding of the experts", "other weights", "working memory", "left for caches"];
  function colour(kind) { return COLOURS[kind] || (kind === "other weights" ? WEIGHTS : RESERVES); }

  function bar_of(plan, group) {
    var sums = {};
    group.stage.lines.forEach(function (line) {
      var kind = kind_of(line);
      if (kind) { sums[kind] = (sums[kind] || 0) + line.bytes; }
    });
    var left = group.stage.free[0];
    sums["left for caches"] = Math.max(0, left);
    var total = KINDS.reduce(function (sum, kind) { return sum + (sums[kind] || 0); }, 0);
    var whole = Math.max(plan.capacity, total);
    var row = make("div", "k3-bar-row");
    row.appendChild(make("span", "k3-bar-name", say(group.numbers.length > 1 ? t("stages {0}") : t("stage {0}"), group.numbers.length > 3 ?
      group.numbers[0] + "\u2026" + group.numbers[group.numbers.length - 1] : group.numbers.join(", "))));
    var bar = make("div", "k3-bar");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", KINDS.filter(function (kind) { return sums[kind]; })
      .map(function (kind) { return t(kind) + " " + gib(sums[kind]) + " GiB"; }).join(", "));
    KINDS.forEach(function (kind) {
      if (!sums[kind]) { return; }
      var piece = make("span");
      piece.style.width = 100 * sums[kind] / whole + "%";
      piece.style.background = colour(kind);
      piece.title = t(kind) + ": " + gib(sums[kind]) + " GiB";
      bar.appendChild(piece);
    });
    var mark = make("i");
    mark.style.left = 100 * plan.capacity / whole + "%";
    bar.appendChild(mark);
    row.appendChild(bar);
    row.appendChild(make("span", "k3-bar-end", say(left < 0 ? t("{0} GiB missing") : t("{0} GiB left"), gib(Math.abs(left)))));
    return row;
  }

  function legend(plan) {
    var list = make("p", "k3-legend");
    var there = { "left for caches": true };
    plan.stages.forEach(function (stage) {
      stage.lines.forEach(function (line) { there[kind_of(line)] = true; });
    });
    KINDS.filter(function (kind) { return there[kind]; }).forEach(function (kind) {
      var entry = make("span");
      var mark = make("b");
      mark.style.background = colour(kind);
      entry.appendChild(mark);
      entry.appendChild(document.createTextNode(t(kind)));
      list.appendChild(entry);
    });
    list.appendChild(make("span", "", t("the line: all memory of a card")));
    return list;
  }

  function table(head, rows) {
    var made = make("table", "k3-table");
    var line = made.createTHead().insertRow();
    head.forEach(function (text, at) {
      var cell = make("th", at ? "k3-right" : "", text);
      cell.scope = "col";
      line.appendChild(cell);
    });
    var inside = made.createTBody();
    rows.forEach(function (row) {
      var found = inside.insertRow();
      row.forEach(function (value, at) {
        var cell = make(at ? "td" : "th", at ? "k3-right" : "");
        if (!at) { cell.scope = "row"; }
        if (value instanceof Node) { cell.appendChild(value); } else { cell.textContent = value; }
        found.appendChild(cell);
      });
    });
    return made;
  }

  /* A range drawn between two ends: a band with a mark at the value. */
  function drawn(r, most) {
    var bar = make("div", "k3-range");
    bar.setAttribute("aria-hidden", "true");
    if (r.low === null || !(most > 0)) { return bar; }
    var band = make("span");
    band.style.left = 100 * r.low / most + "%";
    band.style.width = Math.max(0.5, 100 * (r.high - r.low) / most) + "%";
    var mark = make("i");
    mark.style.left = 100 * r.value / most + "%";
    bar.appendChild(band);
    bar.appendChild(mark);
    return bar;
  }

  function show_speed(found, question, plan) {
    var speed = out("speed");
    var where = out("terms");
    speed.textContent = "";
    where.textContent = "";
    out("situation").textContent = "";
    if (!found) {
      speed.appendChild(make("p", "", t("No speed: nothing runs in these settings.")));
      return;
    }
    var second = function (r) { return { value: r.value / 1e3, low: r.low === null ? null : r.low / 1e3, high: r.high / 1e3 }; };
    var lines = [[t("Output of all clients, tok/s"), found.output_tps], [t("Time of a token, ms"), found.tpot_ms],
      [t("First token, mean, s"), second(found.ttft_ms)]];
    speed.appendChild(table([t("What clients see"), t("Predicted"), t("Nine in ten runs"), t("Drawn")], lines.map(function (line) {
      var r = line[1];
      return [line[0], shown(r.value), r.low === null ? t("being worked out") : span(r), drawn(r, r.high)];
    })));
    var terms = model.step_terms(question).filter(function (one) { return one[1] > 0; });
    var sum = terms.reduce(function (total, one) { return total + one[1]; }, 0);
    terms.sort(function (a, b) { return b[1] - a[1]; });
    where.textContent = say(t("Most of a step: {0}, {1} % of {2} ms through all stages."), t(terms[0][0]),
      format(100 * terms[0][1] / sum, ".0f"), shown(sum));
    out("situation").textContent = say(t("What was measured of it: {0}."), t(facts.cards[plan.cluster.device].situation[plan.engine.name]));
  }

  /* Every way to these tokens, cheapest first. */
  function show_costs(asked, tps) {
    var mix = model.mix_of(asked);
    var known = tps && (tps.low === null ? { value: tps.value, low: tps.value, high: tps.value } : tps);
    var own = model.cost_of(asked, "own", known, mix);
    var ways = [];
    if (own) { ways.push({ name: t("your own servers"), month: own.month, unit: own.unit }); }
    model.rental_classes(asked).forEach(function (way) {
      var one = model.cost_of(asked, way, known, mix);
      if (one) { ways.push({ name: say(t("rented: {0}"), t(facts.classes[way])), month: one.month, unit: one.unit }); }
    });
    var even = null;
    Object.keys(facts.services.offers).forEach(function (name) {
      [false, true].forEach(function (batch) {
        if (batch && facts.batches.indexOf(asked.workload) < 0) { return; }
        var one = model.service_of(asked, name, mix, batch);
        var volume = own && own.mtok;
        var words = t(facts.services.words[name]);
        ways.push({ name: batch ? say(t("{0}, in batches"), words) : words, unit: one.unit, sure: true,
          month: volume ? { value: one.unit.value * volume.value, low: null, high: null } : null });
        if (name === asked.service && !batch && own && own.unit) { even = model.break_even(own, one); }
      });
    });
    ways.sort(function (a, b) { return (a.unit ? a.unit.value : Infinity) - (b.unit ? b.unit.value : Infinity); });
    var most = ways.reduce(function (found, one) { return one.unit ? Math.max(found, one.unit.value * 1.5) : found; }, 0);
    var wide = tps && tps.low !== null;
    var costs = out("costs");
    costs.textContent = "";
    costs.appendChild(table([t("Way"), t("A month, CNY"), t("A million output tokens, CNY"), t("Bounds, CNY"), t("Drawn")], ways.map(function (one) {
      var unit = one.unit;
      var clipped = unit && { low: unit.low, value: unit.value, high: Math.min(unit.high, most) };
      return [one.name, one.month ? shown(one.month.value) : "\u2013", unit ? shown(unit.value) : "\u2013",
        unit ? (wide || one.sure ? span(unit) : t("being worked out")) : "\u2013",
        (wide || one.sure) && clipped ? drawn(clipped, most) : ""];
    })));
    out("even").textContent = even_words(asked, own, even);
    return { own: own, ways: ways, even: even };
  }

  function even_words(asked, own, even) {
    if (!own) { return t("Nobody published a price of such servers."); }
    if (!even) { return ""; }
    var service = t(facts.services.words[asked.service]);
    var day = function (mtok) { return shown(mtok / DAYS); };
    if (even.utilisation.value > 1) {
      return say(t("Owning never costs as little as {0} here: it would take {1} million output tokens a day, and full load gives {2}."),
        service, day(even.mtok_month.value), day(own.mtok.value / state.busy));
    }
    return say(t("Owning and {0} cost the same at {1} million output tokens a day, {2} % of full load; these settings give {3}."),
      service, day(even.mtok_month.value), format(100 * even.utilisation.value, ".0f"), day(own.mtok.value));
  }

  /* One sentence for those who listen, and the table that is printed. */
  function finish(asked, plan, speed, costs) {
    var name = say(t("{0} cards {1} as {2}"), asked.nodes * facts.cards[asked.device].cards_per_node, t(facts.labels[asked.device]), asked.layout);
    var cheapest = costs && costs.ways.find(function (one) { return one.unit; });
    if (!speed) { out("said").textContent = say(t("{0}: does not fit."), name); }
    else if (!costs.own) {
      out("said").textContent = say(t("{0}: fits, and gives {1} tok/s of output ({2})."), name, shown(speed.output_tps.value), span(speed.output_tps));
    } else {
      out("said").textContent = say(t("{0}: fits, and gives {1} tok/s of output ({2}). A million output tokens cost {3} CNY on servers of your own; cheapest: {4}, {5} CNY."),
        name, shown(speed.output_tps.value), span(speed.output_tps), shown(costs.own.unit.value), cheapest.name, shown(cheapest.unit.value));
    }
    var rows = [];
    each("[data-name]", function (input) {
      var label = box.querySelector('label[for="' + input.id + '"]').textContent;
      var unit = part("unit", input.getAttribute("data-name"));
      var value = input.tagName === "SELECT" ? input.options[input.selectedIndex].text : input.value;
      rows.push([label, value + (unit && unit.textContent ? " " + unit.textContent : "")]);
    });
    var inputs = out("inputs");
    inputs.textContent = "";
    inputs.appendChild(table([t("Setting"), t("Value")], rows));
    ready();
  }

  /* What a phone shows below the form, where the results are out of sight. */
  function ready() {
    var tokens = out("speed").querySelector("td");
    var good = out("verdict").textContent;
    out("brief").textContent = tokens ? say(t("{0} {1} tok/s of output."), good, tokens.textContent) : good;
    box.setAttribute("data-ready", run);
  }

  var waiting = 0;
  function later(name) {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(function () { changed(name); }, 120);
  }

  box.addEventListener("input", function (event) {
    var slider = event.target.getAttribute("data-slider");
    var name = slider || event.target.getAttribute("data-name");
    if (!name) { return; }
    if (slider) {
      var value = Number(event.target.value);
      NUMBERS[slider].value = event.target.getAttribute("data-powers") === "1" ? Math.pow(2, value) : value;
    }
    else if (NUMBERS[name]) { tell(name, fault_of(NUMBERS[name], NUMBERS[name].value)); }
    box.removeAttribute("data-ready");
    later(name);
  });
  box.querySelector("form").addEventListener("submit", function (event) { event.preventDefault(); });
  box.addEventListener("click", function (event) {
    var what = event.target.getAttribute("data-do");
    if (what === "reset") {
      apply(fresh(), false);
      window.history.replaceState(null, "", window.location.pathname + window.location.search);
    }
    if (what === "print") { window.print(); }
    if (what === "copy") { copy(); }
  });

  function copy() {
    window.history.replaceState(null, "", address(state));
    var done = function () { out("note").textContent = t("The address of this page holds these settings; it was copied."); };
    var not = function () { out("note").textContent = t("The address of this page holds these settings: copy it from the bar above."); };
    if (navigator.clipboard && navigator.clipboard.writeText) { navigator.clipboard.writeText(window.location.href).then(done, not); } else { not(); }
  }

  function open() {
    var found = from_address(window.location.hash);
    var settings = found.settings;
    if (settings.cached >= settings.isl || settings.isl + settings.osl > settings.max_model_len) {
      settings.max_model_len = Math.max(settings.max_model_len, settings.isl + settings.osl);
      settings.cached = Math.min(settings.cached, settings.isl - 1);
    }
    apply(settings, false);
    if (found.refused.length) {
      out("note").textContent = say(t("Not used from the address, since it cannot be: {0}."), found.refused.slice(0, 5).join(", "));
    }
  }
  window.addEventListener("hashchange", open);
  open();
}());
