// Readies a document for paper: equations set, pictures loaded, tables fitted. Then, and only then, it gets its title.
(function () {
  "use strict";
  const title = document.currentScript.dataset.title;
  const STEPS = ["", "fit-7", "fit-6", "fit-5"];
  const ACROSS = ["fit-wide fit-6", "fit-wide fit-5", "fit-wide fit-4", "fit-broken fit-wide fit-5"];

  window.MathJax = {
    options: { processHtmlClass: "tex2jax_process|mathjax_process|math|output_area" },
    startup: { pageReady: () => MathJax.startup.defaultPageReady().then(fit).then(done) },
  };

  // A long table of many columns lies across its pages, with the heading and the words above it.
  // Each step is tried on all tables that still do not fit, so that the document is laid out once a step.
  function fit() {
    let open = [...document.querySelectorAll("table")].map((table) => {
      const box = table.closest(".k3-scroll") || table.parentElement.insertBefore(document.createElement("div"), table);
      if (!box.contains(table)) box.append(table);
      return { table, box, own: box.className, long: Boolean(box.closest(".k3-browser")) };
    });
    for (const one of open) if (one.long) one.box.closest("section").classList.add("across");
    for (const step of [...STEPS, ...ACROSS]) {
      for (const one of open) one.box.className = `${one.own} ${step}`.trim();
      open = open.filter((one) => (one.long && STEPS.includes(step)) || one.table.offsetWidth > one.box.clientWidth + 1);
    }
  }

  async function done() {
    await document.fonts.ready;
    await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
    document.title = title;
  }
})();
