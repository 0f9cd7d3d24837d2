// The explorer: what the controls are set to is looked up in the data of the page, and shown. Nothing is computed
// here but positions on the screen.
(() => {
  const root = document.querySelector(".explorer");
  const live = root && root.querySelector(".explorer-live");
  if (!live) return;
  const part = (selector) => live.querySelector(selector);
  const parsed = (name) => JSON.parse(part(`script.explorer-${name}`).textContent);
  const data = parsed("data");
  const colours = parsed("colours");
  const depths = Array.from({ length: data.depth + 1 }, (_, l) => l);
  const grid = { gamma: data.gamma, beta: data.beta, n: data.n, depth: depths };
  const names = Object.keys(grid);
  const inputs = Object.fromEntries(names.map((name) => [name, part(`#explorer-${name}`)]));
  const form = part("form");
  const svg = part("svg");

  // ---------------------------------------------------------------------------------- the setting, and its address

  const place = (name) => Number(inputs[name].value);
  const value = (name) => grid[name][place(name)];
  const address = () => "#" + names.map((name) => `${name}=${value(name)}`).join("&");

  // What an address leaves out, or has wrong, is at its default. Null if it is about something else.
  function places(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    if (!names.some((name) => given.has(name))) return null;
    return names.map((name) => {
      const text = (given.get(name) || "").trim();
      const found = text === "" ? -1 : grid[name].indexOf(Number(text));
      return found >= 0 ? found : grid[name].indexOf(data.default[name]);
    });
  }

  // The address then says what is shown, also where it was wrong.
  function set(found) {
    names.forEach((name, i) => { inputs[name].value = found[i]; });
    changed();
  }

  function follow() {
    const found = places(location.hash);
    if (!found) return;
    set(found);
    live.focus({ preventScroll: true });
    live.scrollIntoView();
  }

  // ------------------------------------------------------------------------------------------------------ numbers

  // Null stands for what is not finite.
  function digits(x, count) {
    if (x === null) return "∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    return size < 1e-3 || size >= 1e5 ? x.toExponential(count - 1) : x.toPrecision(count);
  }
  // Errors that only rounding decides about are zero in the data.
  const small = (x) => (x === 0 ? "below 1e-10" : x === null ? "overflow" : digits(x, 4));

  // The one of black and white that stands out more, by the formula of the guidelines for contrast.
  function ink(colour) {
    const [r, g, b] = [1, 3, 5].map((i) => {
      const c = parseInt(colour.slice(i, i + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
  }

  // --------------------------------------------------------------------------------------------------------- views

  function showKernel(k, j) {
    const visits = data.visits[k];
    part(".explorer-kernel tbody").querySelectorAll("tr").forEach((row, query) => {
      row.querySelectorAll("td").forEach((cell, source) => {
        const weight = data.kernel[k][j][query][source];
        const colour = colours[Math.round(weight * (colours.length - 1))];
        cell.textContent = weight === 0 ? "0" : weight.toFixed(3);
        cell.title = `query ${query}, source ${source}: ${digits(weight, 5)}`;
        cell.style.backgroundColor = colour;
        cell.style.color = ink(colour);
      });
    });
    part(".explorer-kernel tfoot").querySelectorAll("td").forEach((cell, source) => {
      cell.textContent = visits[source];
    });
  }

  const conditions = [
    ["diagonality", "assumption", "holds", "fails"],
    ["nu", "theorem_a", "holds", "fails"],
    ["rate", "converges", "converges", "diverges"],
  ];

  function showConditions(of, found) {
    for (const [key, verdict, yes, no] of conditions) {
      const cell = part(`td[data-condition="${of}-${key}"]`);
      const said = cell.querySelector(".explorer-verdict");
      cell.querySelector(".explorer-value").textContent = digits(found(key), 4);
      said.textContent = found(verdict) ? `✓ ${yes}` : `✗ ${no}`;
      said.dataset.holds = found(verdict);
      part(`[data-bound="${key}"]`).textContent =
        key === "diagonality" ? `> ${digits((1 + value("gamma")) / 2, 4)}` : "< 1";
    }
  }

  function draw(tag, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, x] of Object.entries(attributes)) node.setAttribute(name, x);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
  }

  const power = (k) => "10" + [...String(k)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

  // Drawn at the size at which it is seen, so that letters have theirs on a phone too.
  function showCurves(error, distance, depth) {
    const width = svg.clientWidth || 480;
    const height = svg.clientHeight || 280;
    const box = { left: 44, right: width - 12, top: 14, bottom: height - 40 };
    const positive = [...error, ...(distance || [])].filter((x) => x !== null && x > 0);
    const powers = positive.length ? positive.map(Math.log10) : [0];
    const low = Math.floor(Math.min(...powers));
    const high = Math.max(Math.ceil(Math.max(...powers)), low + 1);
    const x = (l) => box.left + ((box.right - box.left) * l) / data.depth;
    const y = (e) => box.bottom - ((box.bottom - box.top) * (Math.log10(e) - low)) / (high - low);

    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const apart = Math.ceil((high - low) / 8);
    for (let k = low; k <= high; k += apart) {
      draw("line", { class: "grid", x1: box.left, x2: box.right, y1: y(10 ** k), y2: y(10 ** k) });
      draw("text", { x: box.left - 6, y: y(10 ** k) + 4, "text-anchor": "end" }, power(k));
    }
    for (let l = 0; l <= data.depth; l += 20) {
      draw("line", { class: "grid", x1: x(l), x2: x(l), y1: box.bottom, y2: box.bottom + 4 });
      draw("text", { x: x(l), y: box.bottom + 18, "text-anchor": "middle" }, l);
    }
    draw("text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, "depth l");
    draw("line", { class: "depth", x1: x(depth), x2: x(depth), y1: box.top, y2: box.bottom });
    for (const [name, series] of [["distance", distance], ["error", error]]) {
      if (!series) continue;
      // The pen is lifted where there is no logarithm.
      let pen = "M";
      const path = series.map((e, l) => {
        const here = e === null || e <= 0 ? "" : `${pen}${x(l).toFixed(1)} ${y(e).toFixed(1)}`;
        pen = here ? "L" : "M";
        return here;
      });
      draw("path", { class: name, d: path.join("") });
      if (series[depth]) draw("circle", { class: name, cx: x(depth), cy: y(series[depth]), r: 5 });
    }
    svg.setAttribute(
      "aria-label",
      `Error on a logarithmic axis against the depth, 0 to ${data.depth}: ${small(error[0])} at depth 0, ` +
        `${small(error[depth])} at the chosen depth ${depth}, ${small(error[data.depth])} at the end.`,
    );
  }

  function sentence(at, error, depth) {
    const context = (key) => data.context[key][at.gamma][at.n][at.beta];
    const known = [
      context("assumption") ? "Assumption 5.1" : "",
      context("theorem_a") ? "ν̂ below 1" : "",
    ].filter(Boolean);
    const shown = known.length ? `, as ${known.join(" and ")} ${known.length > 1 ? "show" : "shows"}` : "";
    const certain = known.length ? shown : ", though neither sufficient condition shows it";
    const why = [
      data.visits[at.n].includes(0) ? "It misses a state." : "",
      data.ends_in_source[at.n] ? "" : "It ends in a state that it never left, so there is no ṽ.",
      context("full_rank") ? "" : "The kernel is singular, so the limit need not be ṽ.",
    ];
    return [
      `γ = ${value("gamma")}, β = ${value("beta")}, n = ${value("n")}, L = ${depth}.`,
      `The error is ${small(error[depth])}.`,
      context("converges") ? `On this context layers converge${certain}.` : "On this context layers diverge.",
      ...why,
    ].filter(Boolean).join(" ");
  }

  function show() {
    const at = Object.fromEntries(names.map((name) => [name, place(name)]));
    const depth = value("depth");
    const error = data.error[at.gamma][at.n][at.beta];
    const distance = data.distance[at.gamma][at.n][at.beta];
    names.forEach((name) => {
      inputs[name].setAttribute("aria-valuetext", value(name));
      part(`#explorer-${name}-value`).textContent = value(name);
    });
    showKernel(at.n, at.beta);
    showConditions("context", (key) => data.context[key][at.gamma][at.n][at.beta]);
    showConditions("population", (key) => data.population[key][at.gamma][at.beta]);
    part("#explorer-error").textContent = small(error[depth]);
    part("#explorer-distance").textContent = distance ? small(distance[depth]) : "undefined";
    showCurves(error, distance, depth);
    part(".explorer-summary").textContent = sentence(at, error, depth);
  }

  // ---------------------------------------------------------------------------------------------------- the reader

  function changed() {
    show();
    history.replaceState(null, "", address());
  }
  // A browser may keep what was turned when a page is loaded again.
  form.reset();
  form.addEventListener("input", show);
  // Not while a control is moved: browsers refuse an address that changes too often.
  form.addEventListener("change", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  // The controls have their first values after the event.
  form.addEventListener("reset", () => setTimeout(changed));
  window.addEventListener("hashchange", () => {
    // Back at the address that the page was opened with: as it was then.
    if (location.hash === "") {
      names.forEach((name) => { inputs[name].value = grid[name].indexOf(data.default[name]); });
      show();
    } else follow();
  });

  // Words that name a setting become links to it. Late, since the theme, when the page has loaded, takes the address
  // of every link for that of a section, and fails on these.
  function link() {
    document.querySelectorAll(".explorer-setting").forEach((words) => {
      const made = document.createElement("a");
      made.href = `#${words.dataset.setting}`;
      // To the address that is there already, a link leads nowhere.
      made.addEventListener("click", () => { if (made.hash === location.hash) follow(); });
      made.append(...words.childNodes);
      words.replaceChildren(made);
    });
  }

  root.classList.add("is-live");
  live.hidden = false;
  new ResizeObserver(show).observe(svg);
  show();
  window.addEventListener("load", () => setTimeout(() => { link(); follow(); }));
})();
