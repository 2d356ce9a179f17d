/* The library's own functions and equations, put together for one plan at a time. What stands between the marks is
   written by k3lib.report.whatif when the book is built; this file only hands it values. */
var K3WhatIf = (function () {
  "use strict";
  var t = window.k3t || function (text) { return text; };
  /* k3:texts */
  /* k3:facts */
  /* k3:equations */

  /* What the translated functions find in place of files, of SymPy and of NumPy. */
  class Engine {
    constructor(name, version, partition, expert_groups, attention_tp, cards, check, activations_outside = false,
      paged = true, mixes = true, base = null) {
      Object.assign(this, { name, version, partition, expert_groups, attention_tp, cards, check, activations_outside,
        paged, mixes, base });
    }
    rule(name) { return py.at(facts.engines[this.name], name); }
    whole(name) { return py.round(this.rule(name).value); }
    in_bytes(name) { return this.rule(name).bytes; }
  }
  const card_of = (device) => py.at(facts.cards, device);
  const exact = (expression, values) => expression(values.plain());
  const line_cny = (basis, currency) => equations[`line_${basis.replace("-", "_")}_${currency}`];
  const given = {
    Engine, exact, line_cny, set_up, passes_of, constants, weight_lines,
    whole: exact,
    integer: (value) => value,
    residual_bytes: () => equations.residual_bytes,
    block_bytes: (token) => (v) => equations.block_bytes({ ...v, token_bytes: token }),
    token_bytes: (_, values) => py.round(equations.token_bytes(values.plain())),
    state_bytes: (_, values) => py.round(equations.state_bytes_of_layer(values.plain())),
    near: () => "",
    capacity_bytes: (device) => card_of(device).capacity,
    architecture: (device) => card_of(device).architecture,
    fact: (_, device, quantity) => (quantity === "scale_up_domain" ? card_of(device).reach : null),
    filled: (family, sets) => curve(facts.kernels.filled[family][sets]),
    shares: (family) => facts.kernels.shares[family].map(([share, points]) => [share, curve(points)]),
    whole_expert: (_, device) => curve(card_of(device).whole),
    exchange_curve: (name) => curve(facts.kernels.exchange[name]),
    prompts_apart: () => { throw new Error("the page has no cards that read prompts apart"); },
    override: ({ setup }, numbers, name, value) => (
      name === "nic_rate" && !setup.card.of_nics[setup.nics - 1][2] ? numbers : { ...numbers, [name]: value }),
    line_expression: (line) => line_cny(line.basis, line.currency),
    arrays: (expressions, values) => {
      const known = values.plain();
      return py.dict(Array.from(expressions).map(([name, of]) => [name, of(known)]));
    }
  };

  /* k3:translated */

  class Curve {
    constructor(size, us) { this.size = size; this.us = us; }
  }
  Curve.prototype.at = curves_Curve_at;
  const curves = new WeakMap();
  function curve(points) {
    if (!points) { return null; }
    if (!curves.has(points)) { curves.set(points, new Curve(points[0], points[1])); }
    return curves.get(points);
  }

  given.ENGINES = py.dict([["vllm", vllm_ENGINE], ["sglang", sglang_ENGINE]]);
  const model = { ...facts.model, values: py.dict(Object.entries(facts.model.values)) };

  /* The lines of a stage's weights: sums of the stored arrays by how an engine lays them, written by the equations. */
  function weight_lines(engine, of, layout, layers, place, copied) {
    const values = stage_plain(engine, of, layout, layers, place);
    const [, parts] = engine.expert_groups(layout);
    const even = 1 / (Math.ceil(of.values.get("experts") / values.experts_held) * parts);
    const routed = equations.routed_whole(values) * even;
    const scales = equations.scales_whole(values) * even;
    const lines = [];
    const add = (name, bytes, grade = "exact", low = bytes, passing = false) => {
      const size = Math.abs(bytes) < 0.5 ? 0 : bytes;
      if (size) { lines.push(new ledger_Line(name, size, low, size, grade, "", null, false, passing)); }
    };
    add("routed experts", routed);
    add("scales of the experts", scales);
    add("padding of the experts", equations.experts_held_bytes(values) - routed - scales);
    if (copied) {
      const mlps = equations.mlps_whole(values);
      lines.push(new ledger_Line("shared experts and dense MLPs", mlps, mlps / values.tensor_parallel, mlps, "derived", ""));
    }
    add("split weights", equations.others_split(values) + (copied ? 0 : equations.mlps_split(values)));
    add("token tables", equations.tables_split(values));
    add("copied weights", equations.copied_whole(values));
    if (values.projection_padding && values.layers_kda) {
      add("padding of projections", equations.projections_padding(values));
    }
    const peak = equations.repack_bytes(values);
    add("load-time peak", peak, "derived", peak, true);
    return lines;
  }

  function stage_plain(engine, of, layout, layers, [first, last]) {
    return {
      ...py.dict([...of.values, ...rules_split_values(engine, of, layout), ...rules_stage_counts(of, layers)]).plain(),
      first: Number(first), last: Number(last)
    };
  }

  class SetUp {
    constructor(plan, nics) {
      Object.assign(this, { model: plan.model, cluster: plan.cluster, layout: plan.layout, engine: plan.engine, nics });
      Object.assign(this, { all_reduce: "auto", drafts: 0, graphs: plan.settings.graphs, facts: null });
      this.card = card_of(plan.cluster.device);
      this.kernel = this.card.kernel;
    }
  }
  const PROPERTIES = {
    domain: setup_SetUp_domain, expert_cards: setup_SetUp_expert_cards, attention_cards: setup_SetUp_attention_cards,
    token_groups: setup_SetUp_token_groups
  };
  Object.keys(PROPERTIES).forEach((name) => Object.defineProperty(SetUp.prototype, name, { get: PROPERTIES[name] }));

  /* The numbers of the model for a set-up. numbers: those that are moved to try how much they matter. */
  function constants(setup, numbers) {
    const card = setup.card;
    const known = { ...facts.constants, ...card.constants, ...card.of_engine[setup.engine.name], nic_rate: card.of_nics[setup.nics - 1] };
    const found = {};
    const values = [];
    Object.keys(known).forEach((name) => {
      const [value, spread] = known[name];
      found[name] = name in numbers ? numbers[name] : value;
      values.push([name, { value: found[name], spread }]);
    });
    found.values = py.dict(values);
    return found;
  }

  /* Times of the passes of a set-up, in us. */
  class Passes {
    constructor(setup) {
      const { layout, engine, card } = setup;
      this.setup = setup;
      this.moe = true;
      this.stages = stage_values(setup);
      this.kinds = Array.from(new Set(this.stages));
      const [sets, parts] = engine.expert_groups(layout);
      this.expert_weights = facts.model.expert_weights / parts;
      this.floor_us = this.expert_weights * facts.model.bytes_of_weight / card.bandwidth;
      this.most_over_mean = facts.kernels.most_over_mean[sets];
      this.link_ratio = card.link_ratio;
      this.kda_us = card.kda_us[Math.max(1, py.round(facts.model.values.kda_heads / setup.attention_cards))];
      this.expert = card.whole === null ? null : new curves_ExpertTime(card.kernel, card.device,
        this.stages[0].width_held / facts.model.values.expert_width, sets, facts.model.expert_scale);
      this.captured = setup.graphs;
      this.prepared = null;
    }

    /* Values of all symbols that stay from pass to pass, by kind of stage. */
    prepare(c) {
      if (this.prepared !== c) {
        this.prepared = c;
        const fixed = { kda_prompt_us: this.kda_us, most_over_mean: this.most_over_mean,
          token_groups: this.setup.token_groups, context_shares: this.setup.layout.dcp, drafted_tokens: 0,
          expert_floor_us: this.floor_us, ...c };
        this.given = this.kinds.map((stage) => ({ ...stage, ...fixed }));
        this.cards = [this.setup.attention_cards, this.setup.expert_cards, this.setup.layout.dcp];
      }
      return this.given;
    }

    /* The terms of one pass by kind of stage, in the order of facts.terms, what launching adds last. */
    terms_of(c, decode, prompt, context, seen) {
      const given = this.prepare(c);
      const reading = prompt > 0;
      const first = given[0];
      first.decode_tokens = decode; first.prompt_tokens = prompt;
      const [tokens, busiest_experts] = equations.routing(first);
      const size = equations.exchange_bytes(first);
      const expert_us = this.expert_us(tokens, c);
      const [attention, experts, dcp] = this.cards;
      const cache_exchange_us = dcp > 1 ? 2 * this.exchange_us(dcp, size, c) : 0;
      const exchange_us = this.exchange_us(attention, size, c);
      const experts_exchange_us = this.exchange_us(experts, size * first.token_groups, c);
      const captured = this.captured && !reading;
      return given.map((v) => {
        v.decode_tokens = decode; v.prompt_tokens = prompt; v.context_tokens = context; v.seen_tokens = seen;
        v.expert_scale = reading ? c.kernel_prompt : c.kernel_decode;
        v.expert_us = expert_us; v.busiest_experts = busiest_experts; v.cache_exchange_us = cache_exchange_us;
        v.exchange_us = exchange_us; v.experts_exchange_us = experts_exchange_us;
        const found = equations.pass_terms(v);
        const work = found[1] + found[2] + found[3] + found[4] + found[5] + found[6];
        v.pass_work_us = work;
        if (!captured) { found[0] = 0; }
        found.push(captured ? 0 : equations.launched_us(v) - work);
        return found;
      });
    }

    /* Times of passes: a row for each stage. decode, prompt: arrays of the same length. */
    times(c, decode, prompt, context, seen) {
      const all = new py.Later(decode.length, (i) => this.terms_of(c, decode[i], prompt[i], context, seen).map(py.sum));
      const rows = this.kinds.map((_, kind) => new py.Later(decode.length, (i) => all.get(i)[kind]));
      return this.stages.map((stage) => rows[this.kinds.indexOf(stage)]);
    }

    hop_us(c, tokens) {
      return equations.hop_us({ ...this.stages[0], decode_tokens: tokens, prompt_tokens: 0, drafted_tokens: 0,
        hop_start_us: c.hop_start_us, hop_rate: c.hop_rate });
    }
  }
  Passes.prototype.expert_us = passes_PassTimes_expert_us;
  Passes.prototype.exchange_us = passes_PassTimes_exchange_us;

  /* Values of every symbol that the layout decides, stage by stage; equal stages are one object. */
  function stage_values(setup) {
    const { engine, layout, card } = setup;
    const runs = rules_stages(engine, setup.model, layout, null);
    const alike = {};
    return runs.map((run, number) => {
      const place = [number === 0, number === runs.length - 1];
      const key = JSON.stringify([Array.from(rules_stage_counts(setup.model, run)), place]);
      if (!(key in alike)) {
        const values = stage_plain(engine, setup.model, layout, run, place);
        alike[key] = { ...values, cache_bytes: 2, state_bytes: 4, stage_bytes: equations.stage_bytes(values),
          stage_work: equations.stage_work(values), card_bandwidth: card.bandwidth, card_rate: card.rate,
          cache_rate: card.cache_rate, residual_rows: facts.model.rows };
      }
      return alike[key];
    });
  }

  const kept = new Map();
  function passes_of(setup) {
    const key = [setup.cluster, setup.layout, setup.engine.name, setup.nics].join(" ");
    if (!kept.has(key)) {
      if (kept.size > 16) { kept.clear(); }
      kept.set(key, new Passes(setup));
    }
    return kept.get(key);
  }
  function set_up(plan, options) { return new SetUp(plan, options.nics); }

  /* Where the time of a generating step goes, through all stages, in ms, by the names of facts.terms. */
  function step_terms(asked) {
    const c = constants(asked.setup, {});
    const running = Math.min(asked.load.concurrency, asked.running);
    const each = Math.max(1, running / asked.setup.layout.pp);
    const { passes, load } = asked;
    const kinds = passes.terms_of(c, each, 0, load.isl + load.osl / 2, load.seen);
    return facts.terms.map((name, i) => [name,
      py.sum(passes.stages.map((stage) => kinds[passes.kinds.indexOf(stage)][i])) / 1000]);
  }

  /* A value with its ends, cheap end first, as [low, value, high]; of what is least at the dear end turned round. */
  const CORNERS = [0, 1, 2];
  const corner = (input, at) => (input[3] ? input[2 - at] : input[at]);

  /* What a cluster costs, bought or let in a class: the bill of that very cluster, or of the same cards by their number.
     asked: device, nodes, nics, and prices that the reader set, by item. Returns the symbols at the three corners, or
     null where nobody published a price. */
  function bill_of(asked, way) {
    const { bills, lines, inputs } = facts.prices;
    const same = bills.filter((one) => one.device === asked.device);
    const named = same.find((one) => one.nodes === asked.nodes && one.nics === asked.nics && one.gbit === facts.nic_gbit);
    const like = named || same.find((one) => one.first);
    if (!like || !(way in like.ways)) { return null; }
    const scale = asked.nodes / like.nodes;
    const held = like.ways[way].map((at) => lines[at]);
    const made = held.map(([line, item, basis, currency, , times, grows], i) =>
      new bill_BillLine(line, item, basis, currency, `count.${i}`, grows ? times * scale : times, ""));
    const cluster = { cards: like.cards * scale };
    return CORNERS.map((at) => {
      const values = py.dict(Object.keys(inputs).map((item) => {
        const set = asked.prices[item];
        return [item, set === undefined ? corner(inputs[item], at) : set];
      }));
      held.forEach((line, i) => values.set(`count.${i}`, line[4][at]));
      return bill_totals(new bill_Bill(cluster, "", made, values), values).plain();
    });
  }

  /* Which classes of rental a cluster's cards are let in. */
  function rental_classes(asked) {
    const like = facts.prices.bills.find((one) => one.device === asked.device && one.first);
    return like ? Object.keys(like.ways).filter((way) => way !== "own") : [];
  }

  const ranged = (ends) => ({ low: ends[0], value: ends[1], high: ends[2] });
  const over = (known, name) => ranged(known.map((v) => equations[name](v)));

  /* The month of a cluster and, where its speed is known, its tokens. tps: {low, value, high} of the whole cluster. */
  function cost_of(asked, way, tps, mix) {
    const totals = bill_of(asked, way);
    if (totals === null) { return null; }
    const found = { way, investment: over(totals, "investment_cny"), month: over(totals, "monthly_cny") };
    if (tps) {
      const rates = [tps.high, tps.value, tps.low];
      found.known = totals.map((v, at) => ({ ...v, ...mix, output_rate: rates[at] }));
      found.unit = over(found.known, "unit_cny");
      found.all = over(found.known, "blended_cny");
      found.mtok = ranged(found.known.map((v) => equations.output_mtok(v)).reverse());
      if (way === "own") { found.kwh = over(found.known, "energy_per_mtok"); }
    }
    return found;
  }

  /* A service's price of a million output tokens with their prompts, at today's list. */
  function service_of(asked, name, mix, batch) {
    const { offers, batch: share } = facts.services;
    const price = (part, at) => {
      const [low, value, high, , , currency] = offers[name][part];
      const set = asked.prices[`${name}.${part}`];
      const rate = currency === "USD" ? fx(asked, at) : 1;
      return set === undefined ? [low, value, high][at] * rate : set * rate;
    };
    const known = CORNERS.map((at) => ({ ...mix, api_share: batch ? share[at] : 1, api_input: price("input", at),
      api_cached: price("cached", at), api_output: price("output", at) }));
    return { name, batch, unit: over(known, "api_cny") };
  }

  function fx(asked, at) {
    const set = asked.prices["fx.cny_per_usd"];
    return set === undefined ? facts.services.fx[at] : set;
  }

  /* Where a cluster of one's own and a service cost the same: low at the cheap ends of owning and the dear end of the
     service. */
  function break_even(own, service) {
    const dear = [service.unit.high, service.unit.value, service.unit.low];
    const known = own.known.map((v, at) => ({ ...v, api_output: dear[at], api_input: 0, api_cached: 0, api_share: 1 }));
    return { utilisation: over(known, "break_even_utilisation"), mtok_month: over(known, "break_even_mtok") };
  }

  const mix_of = (load) => ({ prompt_new: load.isl - load.cached, prompt_cached: load.cached, answer_tokens: load.osl });

  /* The plan that is asked for. Throws Refused with the library's own words for what cannot be. */
  function plan_of(asked) {
    const card = card_of(asked.device);
    const settings = py.replace(new caches_Settings(), { utilisation: asked.memory_share,
      max_model_len: asked.max_model_len, max_num_seqs: facts.most_running, prefix_caching: asked.cached > 0 });
    const cluster = new layout_Cluster(asked.nodes, card.cards_per_node, asked.device);
    return plan_make_plan(model, cluster, layout_of(asked.layout), asked.engine, settings, null);
  }

  function layout_of(text) {
    const sizes = { tp: 1, pp: 1, ep: 1, dp: 1, dcp: 1 };
    text.split(",").forEach((part) => {
      const match = /^(tp|pp|ep|dp|dcp)([1-9][0-9]{0,3})$/.exec(part);
      if (!match) { throw new py.Refused(py.say(t("layout {0}: write it as tp8,pp4"), [text])); }
      sizes[match[1]] = Number(match[2]);
    });
    return new layout_Layout(sizes.tp, sizes.pp, sizes.ep, sizes.dp, sizes.dcp);
  }

  /* Every layout that the engine accepts on so many cards, those that share out the tokens of a cache behind each. */
  function layouts_of(asked) {
    const cards = asked.nodes * card_of(asked.device).cards_per_node;
    const engine = py.at(given.ENGINES, asked.engine);
    const found = [];
    for (const one of inverse_legal_layouts(model, cards, asked.engine)) {
      found.push(String(one));
      for (let dcp = 2; engine.paged && dcp <= one.tp; dcp *= 2) {
        const shared = py.replace(one, { dcp });
        if (!engine.check(model, shared).length) { found.push(String(shared)); }
      }
    }
    return found;
  }

  /* The layout with most room on its tightest card, fitting ones first. */
  function roomiest(asked) {
    const tried = layouts_of(asked).filter((text) => !text.includes("dcp"))
      .map((layout) => ({ layout, plan: plan_of({ ...asked, layout }) }));
    const room = ({ plan }) => (plan.fits ? 1e15 : 0) + plan.stages[plan.tightest].free[0];
    return tried.reduce((best, one) => (best && room(best) >= room(one) ? best : one), null);
  }

  const question_of = (plan, asked) => speed_question(plan,
    new load_Load(asked.isl, asked.osl, asked.concurrency, null, 1, asked.cached),
    new speed_Options("auto", "auto", asked.nics, null));

  const METRICS = { output_tps: "output_tps", tpot_ms: "tpot_ms", ttft_ms: "ttft_mean_ms" };

  /* The ranges around an answer: each factor to both sides. A generator, since each number is tried by a run. */
  function* ranges_of(question, served) {
    const moved = yield* spread_changes(question, {}, served);
    const found = {};
    Object.keys(METRICS).forEach((metric) => {
      const sum = py.sum(Array.from(moved).map(([, change]) => change.get(metric) ** 2));
      const factor = Math.exp(facts.scales[metric] * Math.sqrt(sum));
      const value = served[METRICS[metric]];
      found[metric] = { value, low: value / factor, high: value * factor };
    });
    return found;
  }

  return {
    facts, equations, py, model, constants, step_terms, passes_of,
    Cluster: layout_Cluster, Layout: layout_Layout, Settings: caches_Settings, Load: load_Load, Rules: load_Rules,
    Loop: loop_Loop, Options: speed_Options, Grid: serve_Grid,
    plan_of, question_of, ranges_of, layouts_of, layout_of, roomiest, bill_of, cost_of, service_of, break_even, mix_of,
    rental_classes,
    make_plan: plan_make_plan, question: speed_question, answer: speed_answer, rules_of: speed_rules_of,
    changes: spread_changes, grid: serve_grid, serve: serve_serve,
    legal_layouts: inverse_legal_layouts, totals: bill_totals, BillLine: bill_BillLine, Bill: bill_Bill
  };
}());
