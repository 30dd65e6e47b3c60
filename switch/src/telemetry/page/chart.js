// Lines over time as SVG, in pixels of their own: the picture stretches, lines and words do not.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600, HEIGHT = 100;

/// An element with attributes and children.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/// A chart: series are lists of numbers that end now, `length` places long; thresholds are { name, value, kind }.
/// One that lies far above all that was seen is left to the words below the chart.
export function chart(series, thresholds, length, words) {
  const seen = Math.max(1, ...series.flat());
  const near = thresholds.filter(({ value }) => value <= seen * 3);
  const least = Math.min(...thresholds.map(({ value }) => value));
  const top = 1.12 * Math.max(seen, ...near.map(({ value }) => value), Number.isFinite(least) ? least : 0);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  // Thresholds far below the highest value would lie on the axis: a logarithmic scale from a quarter of the least on keeps them apart.
  const wide = least > 0 && top > 8 * least;
  const share = value => wide ? Math.log1p(4 * value / least) / Math.log1p(4 * top / least) : value / top;
  const y = value => (HEIGHT * (1 - share(value))).toFixed(2);
  const scale = words(top / 1.12) + (wide ? ", log scale" : "");
  const box = element("div", { class: "chart" }, svg, element("i", { class: "top" }, scale));
  let last = null;
  for (const { name, value, kind } of thresholds.filter(({ value }) => value <= top).sort((one, other) => one.value - other.value)) {
    svg.append(drawn("line", { x1: 0, x2: WIDTH, y1: y(value), y2: y(value), class: kind }));
    // Names that would lie on each other share a line.
    if (last && share(value) - share(last.value) < 0.12) {
      last.label.append(`, ${name}`);
      continue;
    }
    const label = element("i", {}, name);
    label.style.top = `${100 * (1 - share(value))}%`;
    box.append(label);
    last = { value, label };
  }
  series.forEach((points, index) => {
    if (points.length === 0) return;
    const x = place => ((WIDTH * (place + length - points.length)) / (length - 1)).toFixed(2);
    const line = points.map((value, place) => `${place ? "L" : "M"}${x(place)} ${y(value)}`).join("");
    if (series.length === 1) svg.append(drawn("path", { class: "area", d: `${line}L${WIDTH} ${HEIGHT}L${x(0)} ${HEIGHT}Z` }));
    svg.append(drawn("path", { class: `s${index % 4}`, d: line }));
  });
  return box;
}
