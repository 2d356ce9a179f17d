/* What the translated functions of the library need of Python: its lists, dictionaries, rounding and formats. */
var py = (function () {
  "use strict";
  var say = window.k3t || function (text) { return text; };

  class Refused extends Error {}

  /* A dictionary: keys may be arrays, as tuples are in Python, and are told apart by what is in them. */
  class Dict {
    constructor(pairs) {
      this.held = new Map();
      for (var i = 0; i < pairs.length; i += 1) { this.set(pairs[i][0], pairs[i][1]); }
    }
    static key(key) {
      if (typeof key !== "object" || key === null) { return key; }
      if (key.length === 2 && typeof key[0] === "number" && typeof key[1] === "number") { return key[0] + ":" + key[1]; }
      return "\u0000" + JSON.stringify(key);
    }
    set(key, value) { this.held.set(Dict.key(key), [key, value]); }
    has(key) { return this.held.has(Dict.key(key)); }
    get(key, other) {
      var found = this.held.get(Dict.key(key));
      return found === undefined ? other : found[1];
    }
    get size() { return this.held.size; }
    * [Symbol.iterator]() { for (var pair of this.held.values()) { yield pair; } }
    plain() { return Object.fromEntries(this.held.values()); }
  }

  class Span {
    constructor(start, stop) { this.start = start; this.stop = stop; }
    get length() { return Math.max(0, this.stop - this.start); }
    * [Symbol.iterator]() { for (var i = this.start; i < this.stop; i += 1) { yield i; } }
  }

  /* A row of numbers each of which is worked out when it is first asked for. */
  class Later {
    constructor(length, make) { this.length = length; this.make = make; this.held = []; }
    get(i) {
      if (this.held[i] === undefined) { this.held[i] = this.make(i); }
      return this.held[i];
    }
    part(low, high) {
      var row = this;
      return new Later(high - low, function (i) { return row.get(low + i); });
    }
    * [Symbol.iterator]() { for (var i = 0; i < this.length; i += 1) { yield this.get(i); } }
  }

  function list(x) {
    if (Array.isArray(x) || x instanceof Later) { return x; }
    if (x instanceof Dict) { return Array.from(x, function (pair) { return pair[0]; }); }
    return Array.from(x);
  }

  function truth(x) {
    if (x === null || x === undefined) { return false; }
    if (typeof x !== "object") { return Boolean(x); }
    if (x instanceof Dict) { return x.size > 0; }
    return Array.isArray(x) || x instanceof Span ? x.length > 0 : true;
  }

  function equal(a, b) {
    if (Array.isArray(a) && Array.isArray(b)) {
      return a.length === b.length && a.every(function (one, i) { return equal(one, b[i]); });
    }
    return a === b || (typeof a === "object" && typeof b === "object" && a !== null && b !== null &&
      JSON.stringify(a) === JSON.stringify(b));
  }

  /* Halves go to the even neighbour, as in Python. */
  function round(x) {
    var down = Math.floor(x);
    var part = x - down;
    if (part === 0.5) { return down % 2 === 0 ? down : down + 1; }
    return Math.round(x);
  }

  function below(array, value) {
    var low = 0;
    var high = array.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (array[middle] < value) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }

  function notAbove(array, value) {
    var low = 0;
    var high = array.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (value < array[middle]) { high = middle; } else { low = middle + 1; }
    }
    return low;
  }

  /* A value between points on straight lines; at the ends beyond them. */
  function interp(x, at, values) {
    if (x <= at[0]) { return values[0]; }
    if (x >= at[at.length - 1]) { return values[values.length - 1]; }
    var i = notAbove(at, x) - 1;
    return (values[i + 1] - values[i]) / (at[i + 1] - at[i]) * (x - at[i]) + values[i];
  }

  var logs = new WeakMap();
  function log(x) {
    if (typeof x === "number") { return Math.log(x); }
    if (!logs.has(x)) { logs.set(x, x.map(Math.log)); }
    return logs.get(x);
  }

  function general(x) {
    var digits = 5 - Math.floor(Math.log10(Math.abs(x)));
    if (x === 0) { return "0"; }
    if (digits >= 0 && digits < 10) { return Number(fixed(x, digits)).toString(); }
    return Number(x.toPrecision(6)).toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  }

  function format(x, spec) {
    if (spec === "" || typeof x === "string") { return typeof x === "string" ? say(x) : String(x); }
    if (spec === "g") { return general(x); }
    var match = /^(,?)(?:\.(\d)f|d)?$/.exec(spec);
    if (!match) { throw new Error("format " + spec); }
    var text = match[2] === undefined ? String(x) : fixed(x, Number(match[2]));
    var parts = text.split(".");
    if (match[1]) { parts[0] = parts[0].replace(/\B(?=(\d{3})+(?!\d))/g, ","); }
    return parts.join(".");
  }

  /* As Python writes it: a number exactly half way between two goes to the even one. */
  function fixed(x, digits) {
    var scaled = x * Math.pow(10, digits);
    var down = Math.floor(scaled);
    if (scaled - down !== 0.5 || !Number.isInteger(x * Math.pow(2, digits + 1))) { return x.toFixed(digits); }
    return ((down % 2 === 0 ? down : down + 1) / Math.pow(10, digits)).toFixed(digits);
  }

  function extreme(sign, args, options) {
    var all = args.length === 1 ? list(args[0]) : args;
    if (!all.length) {
      if ("default" in options) { return options.default; }
      throw new Error("no member");
    }
    var key = options.key || function (x) { return x; };
    return all.reduce(function (best, one) { return sign * key(one) > sign * key(best) ? one : best; });
  }

  return {
    Refused: Refused, Dict: Dict, Later: Later, list: list, truth: truth, equal: equal, round: round, interp: interp, log: log,
    format: format,
    dict: function (pairs) { return new Dict(Array.from(pairs)); },
    say: function (pattern, values) {
      return pattern.replace(/\{(\d+)\}/g, function (whole, at) { return values[Number(at)]; });
    },
    at: function (x, key) {
      if (Array.isArray(x)) { return x[key < 0 ? x.length + key : key]; }
      if (x instanceof Later) { return x.get(key); }
      var found = x instanceof Dict ? x.get(key) : x[key];
      if (found === undefined) { throw new Error("no member " + key); }
      return found;
    },
    put: function (x, key, value) { if (x instanceof Dict) { x.set(key, value); } else { x[key] = value; } },
    get: function (x, key, other) {
      return x instanceof Dict ? x.get(key, other === undefined ? null : other) : key in x ? x[key] : other;
    },
    has: function (x, key) {
      if (x instanceof Dict) { return x.has(key); }
      if (x instanceof Span) { return key >= x.start && key < x.stop; }
      return x.includes(key);
    },
    items: function (x) { return x instanceof Dict ? Array.from(x) : Object.entries(x); },
    values: function (x) { return Array.from(x, function (pair) { return pair[1]; }); },
    keys: function (x) { return Array.from(x, function (pair) { return pair[0]; }); },
    update: function (x, other) { for (var pair of other) { x.set(pair[0], pair[1]); } },
    fromkeys: function (keys, value) {
      return new Dict(list(keys).map(function (key) { return [key, value === undefined ? null : value]; }));
    },
    extend: function (x, more) { for (var one of more) { x.push(one); } },
    repeat: function (x, times) {
      var found = [];
      for (var i = 0; i < times; i += 1) { found = found.concat(x); }
      return found;
    },
    slice: function (x, low, high, step) {
      if (x instanceof Later) { return x.part(low === null ? 0 : low, high === null ? x.length : high); }
      var part = list(x).slice(low === null ? 0 : low, high === null ? undefined : high);
      return step === null ? part : part.filter(function (_, i) { return i % step === 0; });
    },
    unique: function (x) { return Array.from(new Set(x)); },
    union: function (x, y) {
      return x instanceof Dict ? new Dict([...x, ...y]) : Array.from(new Set(x.concat(y)));
    },
    join: function (between, parts) { return list(parts).join(between); },
    map: function (f, x) { return list(x).map(function (one) { return f(one); }); },
    divmod: function (x, by) { return [Math.floor(x / by), py.mod(x, by)]; },
    and: function (x, y) { return truth(x) ? y() : x; },
    or: function (x, y) { return truth(x) ? x : y(); },
    mod: function (x, by) { return x - by * Math.floor(x / by); },
    len: function (x) { return x instanceof Dict ? x.size : x.length; },
    sum: function (x) { return list(x).reduce(function (a, b) { return a + b; }, 0); },
    min: function (a, b) {
      if (arguments.length === 2) { return b < a ? b : a; }
      return extreme(-1, Array.from(arguments), {});
    },
    max: function (a, b) {
      if (arguments.length === 2) { return b > a ? b : a; }
      return extreme(1, Array.from(arguments), {});
    },
    min_by: function (args, options) { return extreme(-1, args, options); },
    max_by: function (args, options) { return extreme(1, args, options); },
    any: function (x) { return list(x).some(truth); },
    all: function (x) { return list(x).every(truth); },
    first: function (x, other) { return x.length ? x[0] : other; },
    zip: function () {
      var all = Array.from(arguments, list);
      return all[0].map(function (_, i) { return all.map(function (one) { return one[i]; }); });
    },
    enumerate: function (x) { return list(x).map(function (one, i) { return [i, one]; }); },
    range: function (start, stop) { return stop === undefined ? new Span(0, start) : new Span(start, stop); },
    arange: function (stop) { return Array.from({ length: stop }, function (_, i) { return i; }); },
    reversed: function (x) { return list(x).slice().reverse(); },
    sorted: function (x) {
      return list(x).slice().sort(function (a, b) { return a < b ? -1 : a > b ? 1 : 0; });
    },
    str: function (x) { return String(x); },
    int: Math.trunc,
    float: Number,
    abs: Math.abs,
    tuple: function (x) { return list(x).slice(); },
    deque: function (x) { return x === undefined ? [] : list(x).slice(); },
    count: function (x, one) { return x.filter(function (y) { return equal(y, one); }).length; },
    clip: function (x, low, high) { return Math.min(Math.max(x, low), high); },
    mean: function (x) { return x.reduce(function (a, b) { return a + b; }, 0) / x.length; },
    median: function (x) { return py.percentile(x, 50); },
    percentile: function (x, level) {
      var ordered = x.slice().sort(function (a, b) { return a - b; });
      var place = level / 100 * (ordered.length - 1);
      var low = Math.floor(place);
      var high = Math.min(low + 1, ordered.length - 1);
      return ordered[low] + (place - low) * (ordered[high] - ordered[low]);
    },
    endswith: function (text, ends) {
      return [].concat(ends).some(function (end) { return text.endsWith(end); });
    },
    startswith: function (text, starts) {
      return [].concat(starts).some(function (start) { return text.startsWith(start); });
    },
    placed: function (names, values, named) {
      Object.keys(named).forEach(function (name) { values[names.indexOf(name)] = named[name]; });
      return Array.from(values);
    },
    transposed: function (x) { return x[0].map(function (_, i) { return x.map(function (row) { return row[i]; }); }); },
    reshape: function (x, rows, columns) {
      return Array.from({ length: rows }, function (_, i) { return py.slice(x, i * columns, (i + 1) * columns, null); });
    },
    bound: function (x, name) { return x[name].bind(x); },
    bisect_left: below,
    bisect_right: notAbove,
    replace: function (x, changes) {
      var found = Object.assign(Object.create(Object.getPrototypeOf(x)), x, changes);
      if (found.__post_init__) { found.__post_init__(); }
      return found;
    },
    fields: function (made) { return (made.fields || made.constructor.fields).map(function (name) { return { name: name }; }); },
    made: function (Made, values) {
      return new Made(...Made.fields.map(function (name) { return values.get(name); }));
    }
  };
}());
