// Asks the switch once a second and draws what it says. What stands on the page comes in as text, never as markup.

import { chart, element } from "./chart.js";

const KEPT = 120;
const PATIENCE = 3000;
const history = new Map();
let before = null;
let heard = null;

const at = id => document.getElementById(id);
const units = (value, step, names) => {
  let index = 0;
  for (; Math.abs(value) >= step && index < names.length - 1; index++) value /= step;
  return `${value >= 100 || index === 0 ? Math.round(value) : value.toFixed(1)} ${names[index]}`;
};
const bytes = value => units(value, 1000, ["B", "KB", "MB", "GB", "TB"]);
const bits = value => units(value, 1000, ["b/s", "Kb/s", "Mb/s", "Gb/s", "Tb/s"]);
/// Time of day as everywhere else: UTC, in seconds.
const utc = time => `${time.slice(0, 19)}Z`;
const count = value => units(value, 1000, ["", "K", "M", "G", "T"]).trim();

/// Keeps the latest of something, and gives all that is kept.
function keep(key, value) {
  const points = history.get(key) ?? [];
  points.push(value);
  if (points.length > KEPT) points.shift();
  history.set(key, points);
  return points;
}

/// How fast something grew since the look before; a counter that was cleared grew by nothing.
function rate(now) {
  const seconds = before ? now.seconds - before.seconds : 0;
  return (of, from) => seconds > 0 && from !== undefined ? Math.max(0, (of - from) / seconds) : 0;
}

function facts(list) {
  const words = list.map(([name, value]) => element("span", {}, `${name} `, element("b", {}, value)));
  return element("p", { class: "facts" }, ...words);
}

function fill(place, children, otherwise) {
  at(place).replaceChildren(...(children.length ? children : [element("p", { class: "empty" }, otherwise)]));
}

function tiles(now, grown, linux) {
  const total = (snapshot, of) => snapshot ? snapshot.ports.reduce((sum, port) => sum + of(port), 0) : undefined;
  const of = get => grown(total(now, get), total(before, get));
  const dropped = port => Object.values(port.drops).reduce((sum, one) => sum + one, 0);
  const lost = total(now, port => port.lossless_lost);
  const down = now.ports.filter(port => !port.up && port.admin === "up").length;
  const all = [
    ["in", bits(8 * of(port => port.rx.bytes))],
    ["out", bits(8 * of(port => port.tx.bytes))],
    ["CNPs a second", count(grown(now.npcc.cnps_sent, before?.npcc.cnps_sent))],
    ["drops a second", count(of(dropped))],
    ["lossless frames lost", count(lost), lost > 0],
    ["buffer taken", `${Math.round(100 * now.buffer.used / Math.max(1, now.buffer.pool))} %`],
    ["flows", count(now.npcc.flows)],
    ["ports down", String(down), down > 0],
  ];
  if (linux.integrated) all.push(["of the kernel's prefixes installed", count(linux.installed), linux.refused > 0]);
  if (linux.draining_s !== null) all.push(["draining for", units(linux.draining_s, 60, ["s", "min", "h"]), true]);
  fill("tiles", all.map(([name, value, bad]) =>
    element("div", { class: bad ? "tile bad" : "tile" }, element("b", {}, value), element("span", {}, name))), "");
}

function queues(now, grown) {
  const cards = [];
  for (const port of now.ports) {
    const old = before?.ports.find(one => one.name === port.name);
    for (const queue of port.queues) {
      const watched = now.npcc.queues.find(one => one.port === port.name && one.priority === queue.priority);
      const depth = watched ? Math.max(watched.depth, queue.depth) : queue.depth;
      const points = keep(`queue ${port.name} ${queue.priority}`, depth);
      if (!watched && queue.peak === 0) continue;
      const curve = now.qos.priorities[queue.priority]?.ecn[port.name];
      const lines = [];
      if (curve) lines.push({ name: "kmin", value: curve[0], kind: "mark" }, { name: "kmax", value: curve[1], kind: "mark" });
      if (watched) for (const name of ["shallow", "deep", "hard"]) lines.push({ name, value: watched[name], kind: "zone-line" });
      const was = old?.queues[queue.priority];
      const head = element("h3", {}, `${port.name} queue ${queue.priority}`);
      if (watched) head.append(element("span", { class: `zone ${watched.zone}` }, watched.zone));
      head.append(element("span", { class: "depth", "data-depth": depth }, bytes(depth)));
      cards.push([watched ? 0 : 1, element("article", { class: "card" }, head, chart([points], lines, KEPT, bytes), facts([
        ["peak", bytes(queue.peak)],
        ["marked/s", count(grown(queue.ecn_marked, was?.ecn_marked))],
        ["dropped/s", count(grown(queue.dropped, was?.dropped))],
        ...(watched ? [["policy", watched.policy_now], ["action", watched.action]] : []),
        ...lines.map(({ name, value }) => [name, bytes(value)]),
      ]))]);
    }
  }
  cards.sort((one, other) => one[0] - other[0]);
  fill("queues", cards.map(([, card]) => card), "No queue is watched, and none has held anything.");
}

function groups(now) {
  const cards = [];
  for (const port of now.ports) {
    for (const group of port.groups) {
      if (group.xoff === null) continue;
      const points = keep(`group ${port.name} ${group.priority}`, group.held);
      const lines = [{ name: "xoff", value: group.xoff, kind: "stop" }, { name: "xon", value: group.xon, kind: "mark" }];
      const head = element("h3", {}, `${port.name} ingress ${group.priority}`);
      if (port.flow.asserted.includes(group.priority)) head.append(element("span", { class: "zone paused" }, "sender paused"));
      head.append(element("span", { class: "depth" }, bytes(group.held)));
      cards.push(element("article", { class: "card" }, head, chart([points], lines, KEPT, bytes), facts([
        ["peak", bytes(group.held_peak)], ["xoff", bytes(group.xoff)], ["xon", bytes(group.xon)],
        ["headroom", `${bytes(group.headroom)} of ${bytes(group.headroom_size)}`],
      ])));
    }
  }
  fill("groups", cards, "No port pauses its senders.");
}

function cnps(now, grown) {
  const series = [], names = [];
  for (const queue of now.npcc.queues) {
    const old = before?.npcc.queues.find(one => one.port === queue.port && one.priority === queue.priority);
    const sent = grown(queue.cnps, old?.cnps);
    series.push(keep(`cnps ${queue.port} ${queue.priority}`, sent));
    names.push([`${queue.port} queue ${queue.priority}`, `${count(sent)}/s of ${count(queue.cnps)}`]);
  }
  fill("cnps", series.length ? [chart(series, [], KEPT, value => `${count(value)}/s`), facts(names)] : [], "NPCC watches no queue.");
}

/// A table: columns are names, numbers to the right where their name ends in `#`.
function table(place, columns, rows, otherwise) {
  if (rows.length === 0) {
    at(place).replaceChildren(element("tbody", {}, element("tr", {}, element("td", {}, otherwise))));
    return;
  }
  const side = column => column.endsWith("#") ? { class: "n" } : {};
  const head = columns.map(column => element("th", side(column), column.replace("#", "")));
  const body = rows.map(row => element("tr", {}, ...row.map((cell, index) => element("td", side(columns[index]), cell))));
  at(place).replaceChildren(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

function flows(all) {
  const hex = qp => qp === null ? "unknown" : `0x${qp.toString(16)}`;
  const rows = all.slice(0, 20).map(flow => [flow.src, flow.dst, `${hex(flow.sender_qp)} > ${hex(flow.dest_qp)}`, `${flow.port} ${flow.priority}`,
    flow.cold ? `${flow.evidence}, cold` : flow.evidence, bytes(flow.bytes), count(flow.cnps), flow.response ?? flow.refused ?? ""]);
  table("flows", ["sender", "receiver", "sender QP > dest QP", "queue", "evidence", "bytes#", "CNPs#", "response/refused"], rows, "No flow is known.");
}

function drops(now, grown) {
  const rows = [];
  for (const port of now.ports) {
    const old = before?.ports.find(one => one.name === port.name);
    for (const [reason, total] of Object.entries(port.drops)) {
      const speed = grown(total, old ? old.drops[reason] ?? 0 : undefined);
      rows.push([speed, total, [port.name, reason, count(speed), count(total)]]);
    }
  }
  rows.sort((one, other) => other[0] - one[0] || other[1] - one[1]);
  table("drops", ["port", "reason", "a second#", "in all#"], rows.map(([, , cells]) => cells), "Nothing was dropped.");
}

const WORDS = {
  "storm-began": "the peer pauses without end: storm",
  "storm-ended": "the storm is over",
  "storm-warning": "the peer pauses for half of the time: short of a storm",
  "lossless-lost": "lossless frames lost",
  "late-refresh": "pause refreshed too late",
  "cpu-pause": "peer paused, as the worker fell behind",
  "slow-turn": "a turn of a worker took too long (us)",
  "link-down": "link down",
  "link-up": "link up (Mb/s)",
  "device-gone": "the device is gone",
  "interface-gone": "the interface in Linux is gone",
  "neighbor-moved": "a neighbour has another MAC address",
  "duplicate-address": "an address has two owners",
  "marking-late": "senders are paused before they are marked",
  "tx-stalled": "the device takes no frames (times of 10 ms)",
};

/// Text of a line of the log without the times that stand before it.
const message = line => line.text.replace(/^\d+ us: /, "").replace(line.wall, "").trim();

function events(now, lines) {
  const happened = now.events.map(({ wall, kind, port, priority, count: times }) => {
    const place = [port, priority === null ? "" : `priority ${priority}`].filter(Boolean).join(" ");
    const shown = times > 1 ? `, ${times}` : "";
    return { time: wall, text: `${place}${place ? ": " : ""}${WORDS[kind] ?? kind}${shown}`, kind: "event" };
  });
  const changes = lines.filter(line => line.kind === "change").map(line => ({ time: line.wall, text: message(line), kind: "change" }));
  const all = [...happened, ...changes].sort((one, other) => one.time.localeCompare(other.time)).slice(-60).reverse();
  const item = ({ time, text, kind }) => element("li", { class: kind }, element("time", {}, utc(time)), text);
  fill("events", all.map(item), "Nothing happened yet.");
  const decided = lines.filter(line => line.kind === "decision").slice(-40).reverse();
  fill("decisions", decided.map(line => item({ time: line.wall, text: message(line), kind: "decision" })), "No flow was considered yet.");
}

async function ask(what) {
  const answer = await fetch(`api/${what}`, { signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
  return answer.json();
}

function show(now, all, lines, linux) {
  // A switch that was started anew counts from 0.
  if (before && now.seconds < before.seconds) before = null;
  const grown = rate(now);
  at("version").textContent = `${now.version}, up ${units(now.seconds, 60, ["s", "min", "h"])}`;
  tiles(now, grown, linux);
  queues(now, grown);
  groups(now);
  cnps(now, grown);
  flows(all);
  drops(now, grown);
  events(now, lines);
  before = now;
}

async function look() {
  try {
    show(...await Promise.all(["snapshot", "flows", "log", "linux"].map(ask)));
    heard = new Date();
    document.body.dataset.state = "live";
    at("state").textContent = `Live, ${utc(heard.toISOString())}`;
    at("dead").hidden = true;
  } catch (error) {
    document.body.dataset.state = "dead";
    at("state").textContent = "No answer";
    at("dead").textContent = heard ? `The switch has not answered since ${utc(heard.toISOString())}: what stands here is from then.` : "The switch does not answer.";
    at("dead").hidden = false;
    console.warn(error);
  }
  setTimeout(look, 1000);
}

look();
