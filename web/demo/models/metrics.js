// Reads the Prometheus text format (version 0.0.4), as far as an overview needs
// it: samples with their labels, comments and time stamps ignored.

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

export class Metrics {
  #samples = new Map();

  constructor(text) {
    for (const line of text.split("\n")) {
      const match = line.startsWith("#") ? null : SAMPLE.exec(line);
      if (!match) continue;
      const [, name, labels = "", value] = match;
      if (!this.#samples.has(name)) this.#samples.set(name, []);
      this.#samples.get(name).push({ labels: parseLabels(labels), value: Number(value.replace("Inf", "Infinity")) });
    }
  }

  samples(name) {
    return this.#samples.get(name) ?? [];
  }

  /** The sum of the samples of `name` whose labels include `where`. */
  sum(name, where = {}) {
    const wanted = Object.entries(where);
    return this.samples(name)
      .filter(({ labels }) => wanted.every(([k, v]) => labels[k] === v))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** Sums by the values of the named labels: `[{labels, value}]`. */
  by(name, ...labels) {
    const groups = new Map();
    for (const sample of this.samples(name)) {
      const key = labels.map((l) => sample.labels[l] ?? "").join("\n");
      const group = groups.get(key) ?? { labels: Object.fromEntries(labels.map((l) => [l, sample.labels[l] ?? ""])), value: 0 };
      group.value += sample.value;
      groups.set(key, group);
    }
    return [...groups.values()];
  }
}

function parseLabels(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(LABEL)) {
    labels[name] = value.replace(/\\[\\"n]/g, (e) => ESCAPES[e]);
  }
  return labels;
}
