// What the collector answers at /api/v1, shown. Nothing is computed here from counters: a number on
// this page is one that the collector gave, and where there is none, none is shown.
"use strict";

const EVERY_MS = 5000;
const PAGE = 50;
const COUNTS = [
  "requestPacketTotalCount", "skippedPsnTotalCount", "filledPsnTotalCount",
  "expiredPsnTotalCount", "abandonedPsnTotalCount", "pendingPsnCount",
  "repeatedPsnTotalCount", "unclassifiedLatePacketTotalCount",
];
const LINES = [
  ["skippedPsnTotalCount", "skipped", "#c60"],
  ["filledPsnTotalCount", "filled", "#2a7"],
  ["expiredPsnTotalCount", "expired", "#c33"],
  ["repeatedPsnTotalCount", "repeated", "#58c"],
];

const byId = (id) => document.getElementById(id);
let cursor = "";
let chosen = null;

// What the collector's clock said last, in milliseconds: ages are by it, and not by the browser's.
let clock = NaN;

async function ask(path) {
  const response = await fetch(path, { headers: { accept: "application/json" } });
  const body = await response.json();
  if (!response.ok) throw new Error(body.detail ?? `HTTP ${response.status}`);
  clock = Date.parse(response.headers.get("date") ?? "");
  return body;
}

function cell(row, text, kind) {
  const td = row.insertCell();
  td.textContent = text;
  if (kind) td.className = kind;
  return td;
}

// Whole numbers, also those that come as digits because they pass 2^53.
function digits(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function time(value) {
  const date = new Date(Number(value));
  return Number.isNaN(date.valueOf()) ? String(value) : date.toISOString().replace("T", " ");
}

function hex(value, width) {
  return "0x" + Number(value).toString(16).padStart(width, "0");
}

function stream(epoch) {
  const source = epoch.sourceIPv4Address ?? epoch.sourceIPv6Address;
  const destination = epoch.destinationIPv4Address ?? epoch.destinationIPv6Address;
  const parts = [`${source} > ${destination}`, `qp ${hex(epoch.rdmaDestinationQP, 6)}`,
    `pkey ${hex(epoch.rdmaPartitionKey, 4)}`];
  if (epoch.dot1qVlanId !== undefined) parts.push(`vlan ${epoch.dot1qVlanId}`);
  if (epoch.layer2SegmentId !== undefined) parts.push(`segment ${epoch.layer2SegmentId}`);
  return parts.join(" ");
}

function question() {
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(byId("filter"))) {
    if (value.trim() !== "") asked.set(name, value.trim());
  }
  asked.set("limit", PAGE);
  return asked;
}

function showEpochs(page, body) {
  for (const epoch of page.epochs) {
    const row = body.insertRow();
    row.className = "choose";
    row.tabIndex = 0;
    cell(row, epoch.outcome);
    cell(row, stream(epoch));
    for (const name of COUNTS) cell(row, digits(epoch[name]), "n");
    cell(row, digits(epoch.reportGaps), "n");
    const words = epoch.qualifications.join(", ");
    cell(row, epoch.reason === null ? words : `${words}${words ? "; " : ""}${epoch.reason}`, "words");
    cell(row, time(epoch.heardMilliseconds));
    const choose = () => {
      chosen = epoch;
      showReadings().catch(problem);
    };
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") choose();
    });
  }
  cursor = page.next ?? "";
  byId("more").hidden = page.next === null;
}

async function epochs() {
  const page = await ask(`/api/v1/epochs?${question()}`);
  const body = document.createElement("tbody");
  showEpochs(page, body);
  byId("epochs").tBodies[0].replaceWith(body);
}

async function more() {
  const asked = question();
  asked.set("cursor", cursor);
  showEpochs(await ask(`/api/v1/epochs?${asked}`), byId("epochs").tBodies[0]);
}

async function summary() {
  const all = await ask("/api/v1/summary");
  const list = byId("counts");
  list.replaceChildren();
  const entries = Object.entries(all.epochs).concat([
    ["sessions open", all.sessions.open],
    ["dropped by the collector itself", all.collectorDrops],
  ]);
  for (const [word, count] of entries) {
    const item = document.createElement("li");
    const number = document.createElement("strong");
    number.textContent = digits(count);
    item.append(number, word);
    list.append(item);
  }
  const { state, reason } = all.intake;
  byId("intake").textContent = `intake: ${state}${reason === null ? "" : ", " + reason}`;
}

async function sessions() {
  const page = await ask("/api/v1/sessions?limit=20");
  const body = document.createElement("tbody");
  for (const session of page.sessions) {
    const row = body.insertRow();
    cell(row, session.session);
    cell(row, session.state);
    cell(row, session.peer);
    cell(row, time(session.openedMilliseconds));
    cell(row, session.reason ?? "", "words");
    for (const outcome of ["active", "complete", "incomplete", "invalid"]) {
      cell(row, digits(session.epochs[outcome]), "n");
    }
  }
  byId("sessions").tBodies[0].replaceWith(body);
}

function interval(counter) {
  const { state, value, reason } = counter.interval;
  return state === "exact" ? `${digits(value)} frames` : `unknown: ${reason}`;
}

// How long ago, by the collector's clock, and whether that still says what is so.
function heard(counter) {
  const seconds = Math.floor(Number(counter.ageMilliseconds) / 1000);
  if (counter.current) return `${seconds} s ago`;
  return counter.sessionState === "closed" ? "session ended" : `not for ${digits(seconds)} s`;
}

async function pfc() {
  const page = await ask("/api/v1/pfc?limit=256");
  const body = document.createElement("tbody");
  for (const counter of page.pfc) {
    const row = body.insertRow();
    const received = counter.ingressPhysicalInterface;
    if (!counter.current) row.className = "old";
    cell(row, counter.exporter);
    cell(row, counter.session, "n");
    cell(row, counter.observationDomainId, "n");
    cell(row, counter.observationPointId, "n");
    cell(row, counter.device ?? "");
    cell(row, counter.port ?? "");
    cell(row, received === undefined ? `${counter.egressPhysicalInterface}, transmitted` : `${received}, received`);
    cell(row, counter.pfcPriority, "n");
    cell(row, digits(counter.pfcControlFrameTotalCount), "n");
    cell(row, interval(counter), "words");
    cell(row, time(counter.observationTimeMilliseconds));
    cell(row, heard(counter), "age");
  }
  byId("pfc").tBodies[0].replaceWith(body);
  const shown = page.pfc.length === 0 ? "None was reported." : "All that are stored are shown.";
  byId("pfc-shown").textContent = page.next === null ? shown : `${page.pfc.length} of more are shown.`;
}

// What is not known has no number.
function known(value) {
  return value === null ? "not known" : digits(value);
}

function age(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} d ago`;
}

// Why a row does not say how its queue stands now; nothing where it may.
function old(latest, connection) {
  if (connection === undefined) return "not asked any more";
  if (connection === "absent") return "device absent";
  const past = clock - Number(latest.receivedMilliseconds);
  if (Number.isNaN(past)) return "of unknown age";
  return past > 2 * Number(latest.durationNs) / 1e6 + 60000 ? "nothing newer" : "";
}

async function devices() {
  const { devices } = await ask("/api/v1/queues/devices");
  const body = document.createElement("tbody");
  for (const device of devices) {
    const row = body.insertRow();
    const { accepted = 0, repeated = 0, ...others } = device.verdicts;
    const refused = Object.values(others).reduce((sum, rows) => sum + BigInt(rows), 0n);
    cell(row, device.device);
    cell(row, device.connection ?? "not asked any more");
    cell(row, device.sinceMilliseconds === undefined ? "" : time(device.sinceMilliseconds));
    cell(row, device.problem ?? "", "words");
    cell(row, digits(device.queues), "n");
    cell(row, digits(accepted), "n");
    cell(row, digits(refused), "n");
    cell(row, device.url ?? "");
    if (device.connection === undefined || device.connection === "absent") row.className = "old";
  }
  byId("devices").tBodies[0].replaceWith(body);
  byId("devices").hidden = devices.length === 0;
  byId("devices-shown").textContent = devices.length === 0
    ? "None is configured."
    : "That a device is absent says nothing about its queues.";
  return new Map(devices.map((device) => [device.device, device.connection]));
}

async function queues() {
  const connections = await devices();
  const page = await ask("/api/v1/queues?limit=256");
  const body = document.createElement("tbody");
  for (const queue of page.queues) {
    const row = body.insertRow();
    const { latest, epoch } = queue;
    cell(row, queue.device);
    cell(row, queue.interface);
    cell(row, queue.queueId);
    if (latest === null) {
      cell(row, "no row is stored", "words").colSpan = 10;
      continue;
    }
    const received = Number(latest.receivedMilliseconds);
    const reason = old(latest, connections.get(queue.device));
    const words = Number.isNaN(clock) ? "" : `, ${age(clock - received)}`;
    cell(row, `${time(received)}${words}${reason === "" ? "" : `; ${reason}`}`, "age");
    if (reason !== "") row.className = "old";
    cell(row, latest.mappedPriority.join(", "));
    cell(row, digits(latest.intervalId), "n");
    cell(row, latest.unknownReason === null ? latest.quality : `${latest.quality}: ${latest.unknownReason}`);
    cell(row, digits(latest.durationNs), "n");
    cell(row, known(latest.gatedBacklogNs), "n");
    cell(row, known(latest.backlogNs), "n");
    cell(row, known(latest.absoluteErrorNs), "n");
    cell(row, digits(epoch.missingIntervals), "n");
    cell(row, digits(epoch.rejected), "n");
  }
  byId("queues").tBodies[0].replaceWith(body);
  const shown = page.queues.length === 0 ? "None was reported." : "All that are stored are shown.";
  byId("queues-shown").textContent =
    page.next === null ? shown : `${page.queues.length} of more are shown.`;
}

function drawn(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// What stands beside an epoch explains it as little as the epoch explains it: the collector says so in
// its own words.
async function beside(path) {
  const answer = await ask(`/api/v1/epochs/${path}/pfc`);
  const body = document.createElement("tbody");
  for (const counter of answer.counters) {
    const row = body.insertRow();
    cell(row, answer.device);
    cell(row, answer.port);
    cell(row, counter.direction);
    cell(row, answer.pfcPriority, "n");
    cell(row, interval(counter), "words");
    for (const reading of [counter.earlier, counter.later]) {
      cell(row, reading === null ? "no reading" : time(reading.observationTimeMilliseconds));
    }
    cell(row, counter.wholeFlow ? "yes" : "no");
  }
  byId("beside").tBodies[0].replaceWith(body);
  byId("beside").hidden = answer.counters.length === 0;
  const more = answer.more ? ` ${answer.counters.length} of more are shown.` : "";
  byId("beside-shown").textContent =
    (answer.reason === null ? answer.meaning : `Unknown: ${answer.reason}.`) + more;
}

async function showReadings() {
  if (chosen === null) return;
  const path = [chosen.session, chosen.observationDomainId, chosen.rdmaSequenceEpochId].join("/");
  const { points } = await ask(`/api/v1/epochs/${path}/history`);
  byId("one").hidden = false;
  byId("which").textContent = `${stream(chosen)}, session ${chosen.session}, epoch ` +
    `${chosen.rdmaSequenceEpochId}: ${points.length} readings kept`;
  const chart = byId("chart");
  chart.replaceChildren();
  byId("legend").replaceChildren();
  await beside(path);
  if (points.length === 0) return;
  const at = points.map((point) => Number(point.receivedMilliseconds));
  const most = Math.max(1, ...points.flatMap((point) => LINES.map(([name]) => Number(point[name]))));
  const [first, last] = [at[0], at[at.length - 1]];
  const x = (ms) => 60 + 720 * (last === first ? 0.5 : (ms - first) / (last - first));
  const y = (count) => 210 - 190 * count / most;
  chart.append(
    drawn("text", { x: 4, y: y(most) + 4 }, digits(most)), drawn("text", { x: 4, y: y(0) + 4 }, "0"),
    drawn("text", { x: 60, y: 234 }, time(first)),
    drawn("text", { x: 780, y: 234, "text-anchor": "end" }, time(last)),
  );
  for (const [name, word, colour] of LINES) {
    let piece = [];
    const end = () => {
      if (piece.length > 1) {
        chart.append(drawn("polyline", { points: piece.join(" "), fill: "none", stroke: colour, "stroke-width": 1.5 }));
      }
      piece = [];
    };
    points.forEach((point, index) => {
      // Where a report is missing, or may be, no line is drawn over what nobody has.
      if (point.reportGaps !== 0) end();
      const [px, py] = [x(at[index]), y(Number(point[name]))];
      piece.push(`${px.toFixed(1)},${py.toFixed(1)}`);
      chart.append(drawn("circle", { cx: px.toFixed(1), cy: py.toFixed(1), r: 2.2, fill: colour }));
    });
    end();
    const entry = document.createElement("span");
    entry.textContent = `\u25cf ${word}`;
    entry.style.color = colour;
    byId("legend").append(entry);
  }
}

function problem(error) {
  byId("problem").textContent = error.message;
  byId("intake").textContent = "what is shown may be old: the last question had no answer";
}

let paged = false;
async function refresh() {
  try {
    await summary();
    // Further pages would be taken away from under whoever reads them.
    await Promise.all([paged ? null : epochs(), sessions(), pfc(), queues(), showReadings()]);
    byId("problem").textContent = "";
  } catch (error) {
    problem(error);
  }
}

byId("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  paged = false;
  refresh();
});
byId("more").addEventListener("click", () => {
  paged = true;
  more().catch(problem);
});
refresh();
setInterval(refresh, EVERY_MS);
