// What the theme leaves undone for readers who use a keyboard, a screen reader, or paper.

// A box that scrolls sideways can be reached by keyboard, and then moved with the arrows. The theme sees to code and
// tables that are too wide when the page has loaded. Formulas are set later, and what is folded has no size yet.
const boxes = [
  "pre",
  ".pst-scrollable-table-container",
  ".cell_output > .output",
  "div.math mjx-container",
  "span.math",
].join(", ");

function reach(box) {
  // Glyphs may be a little higher than their box, and an accent a little wider; formulas scroll sideways alone.
  const formula = box.closest(".math") && box.querySelector("mjx-math");
  const width = formula ? formula.getBoundingClientRect().width : box.scrollWidth;
  const high = box.scrollHeight > box.clientHeight + 1 && !box.closest(".math");
  if (high || width > box.clientWidth + 1) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

window.addEventListener("load", async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const sizes = new ResizeObserver((changed) => changed.forEach((change) => reach(change.target)));
  document.querySelectorAll(boxes).forEach((box) => sizes.observe(box));
});

document.addEventListener("DOMContentLoaded", () => {
  // An entry of the bibliography is an item of its list; the role that it comes with is given up in the standard.
  document.querySelectorAll("[role='list'] > [role='doc-biblioentry']").forEach((entry) => {
    entry.setAttribute("role", "listitem");
  });
  // A signature over several lines is marked up as definitions without a term, and is none.
  document.querySelectorAll("dt > dl, dt > dl > dd").forEach((part) => {
    part.setAttribute("role", "presentation");
  });
});

// Paper is white: a dark page is printed in its light colours.
let shown = null;
window.addEventListener("beforeprint", () => {
  shown = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
window.addEventListener("afterprint", () => {
  if (shown !== null) document.documentElement.dataset.theme = shown;
  shown = null;
});
