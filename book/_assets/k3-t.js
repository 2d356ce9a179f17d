/* Texts of the page scripts in the language of the page: k3t("{0} of {1} rows", 3, 12). Before every other script. */
window.k3t = function (text) {
  "use strict";
  var values = Array.prototype.slice.call(arguments, 1);
  var said = (window.k3Texts || {})[text] || text;
  return said.replace(/\{(\d)\}/g, function (place, number) {
    return Number(number) < values.length ? String(values[Number(number)]) : place;
  });
};
