// Called once the whole book is loaded, in its print layout: waits for formulas, fonts and pictures, then makes what
// is wider than the page smaller. Returns the number of formulas, and what is too wide all the same.
async () => {
  const formulas = [...document.querySelectorAll("span.math, div.math")];
  if (formulas.length) {
    if (!(window.MathJax && MathJax.startup)) throw new Error("MathJax was not loaded");
    await MathJax.startup.promise;
    const wrong = formulas.filter((node) => !node.querySelector("mjx-math") || node.querySelector("mjx-merror"));
    if (wrong.length) throw new Error(`formulas that MathJax does not set: ${wrong.map((node) => node.textContent)}`);
  }
  await document.fonts.ready;
  for (const image of document.images) await image.decode();

  // A block within a box that is narrower than the page has the room of that box.
  const room = (node) => {
    const parent = node.closest("td, th, dd, li, figure, .admonition, article") || document.body;
    const style = getComputedStyle(parent);
    return parent.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  };

  for (const box of document.querySelectorAll(".math mjx-container")) {
    const number = box.parentElement.querySelector(":scope > .eqno");
    const free = room(box) - (number ? number.offsetWidth : 0);
    const width = box.querySelector("mjx-math").getBoundingClientRect().width;
    const size = parseFloat(getComputedStyle(box).fontSize);
    if (width > free) box.style.setProperty("font-size", `${size * (free / width) * 0.99}px`, "important");
  }

  // Names in code are broken before letters get small.
  const scales = [1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7];
  for (const table of document.querySelectorAll("article table")) {
    const size = parseFloat(getComputedStyle(table).fontSize);
    const free = room(table) + 0.5;
    const fits = (scale) => {
      table.style.fontSize = `${size * scale}px`;
      return Math.max(table.scrollWidth, table.offsetWidth) <= free;
    };
    if (scales.slice(0, 4).some(fits)) continue;
    table.classList.add("loose");
    if (!scales.some(fits)) table.classList.add("broken");
  }

  // Short pieces of code stay in one piece, and with what they show.
  for (const code of document.querySelectorAll("pre")) {
    if (code.offsetHeight < 130) code.classList.add("short");
  }

  const edge = document.body.getBoundingClientRect().right + 1;
  const wide = [...document.querySelectorAll("article *")].filter(
    (node) => !node.closest("mjx-assistive-mml") && node.getBoundingClientRect().right > edge
  );
  // Of an element and what it is in, the inner one says more.
  const inner = wide.filter((node) => !wide.some((other) => other !== node && node.contains(other)));
  const told = (node) => `${node.closest("article").id}: ${node.textContent.trim().slice(0, 60) || node.tagName}`;
  return { formulas: formulas.length, wide: [...new Set(inner.map(told))] };
}
