// The board's pure modules: events in order and each once, reconnecting, what hostile text becomes.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { KEPT, Log } from "../../web/board/log.js";
import * as model from "../../web/board/model.js";
import { href, parse, repoOf, takeToken } from "../../web/board/route.js";
import { PROTOCOL, Stream, TOKEN_PROTOCOL } from "../../web/board/stream.js";
import { comparedLines, diffLines, plain, span, usd } from "../../web/board/text.js";
import { ROOT } from "./lib.mjs";

const event = (number, more = {}) => ({ source: "lane", number, at: number * 1000, kind: "queued", text: `event ${number}`, ...more });
const page = (...cursors) => ({ events: cursors.map((cursor) => [cursor, event(cursor)]), next: cursors.at(-1) ?? 0 });
const cursors = (log) => log.entries.map(({ cursor }) => cursor);

test("events are taken once and in order, and what comes early waits for what is missing", () => {
  const log = new Log();
  assert.equal(log.told(7, event(7)).gap, true, "nothing is taken before the first page");
  log.begin(page(4, 5));
  assert.deepEqual([log.cursor, log.older], [5, true]);
  assert.equal(log.told(5, event(5)).news.length, 0, "a repeat");
  assert.equal(log.told(6, event(6)).news.length, 1);
  assert.deepEqual(log.told(9, event(9)), { news: [], gap: true });
  const filled = log.fill(page(7, 8));
  assert.deepEqual([filled.news.map(({ number }) => number), filled.lost, filled.gap], [[7, 8, 9], false, false]);
  assert.deepEqual(cursors(log), [4, 5, 6, 7, 8, 9]);
});

test("events that the platform keeps no more are told as lost, and nothing after them is", () => {
  const log = new Log();
  log.begin(page(1));
  assert.equal(log.fill(page(50, 51)).lost, true);
  log.told(60, event(60));
  assert.equal(log.skip().length, 1);
  assert.deepEqual([log.cursor, log.gap], [60, false]);
});

test("an empty log begins at its cursor, and a long one keeps the newest", () => {
  const log = new Log();
  log.begin({ events: [], next: 0 });
  assert.deepEqual([log.cursor, log.older], [0, false]);
  for (let cursor = 1; cursor <= KEPT + 5; cursor += 1) log.told(cursor, event(cursor));
  assert.deepEqual([log.entries.length, log.entries[0].cursor, log.older], [KEPT, 6, true]);
});

/** A platform of events, sockets that a test holds, and timers that it fires. */
function outside(total) {
  const all = Array.from({ length: total }, (_, at) => [at + 1, event(at + 1)]);
  const world = { all, sockets: [], timers: [], got: [], states: [], lost: 0, refuse: null };
  world.page = async ({ after, last }) => {
    if (world.refuse) throw world.refuse;
    const from = last !== undefined ? Math.max(0, all.length - last) : after;
    const events = all.filter(([cursor]) => cursor > from).slice(0, 1000);
    return { events, next: events.at(-1)?.[0] ?? from };
  };
  world.socket = (after, protocols) => {
    const socket = { after, protocols, closed: false, close: () => (socket.closed = true) };
    world.sockets.push(socket);
    return socket;
  };
  world.later = (action, ms) => world.timers.push({ action, ms }) - 1;
  world.never = (handle) => {
    if (world.timers[handle]) world.timers[handle].action = null;
  };
  world.onEvents = (events, { lost }) => {
    world.got.push(...events.map(({ number }) => number));
    if (lost) world.lost += 1;
  };
  world.onState = (name, detail) => world.states.push([name, detail?.delay ?? null]);
  world.add = () => all.push([all.length + 1, event(all.length + 1)]);
  world.tell = (cursor) => world.sockets.at(-1).onmessage({ data: JSON.stringify(all[cursor - 1]) });
  world.fire = () => {
    const due = world.timers.findLast(({ action }) => action);
    const { action } = due;
    due.action = null;
    action();
    return due.ms;
  };
  return world;
}

const settled = () => new Promise((done) => setTimeout(done, 5));
const upto = (number) => Array.from({ length: number }, (_, at) => at + 1);

test("a socket that ends is opened again at the cursor, and what happened meanwhile is read first", async () => {
  const world = outside(3);
  const stream = new Stream("sy1.a.b", world);
  await stream.start();
  assert.deepEqual(world.sockets[0].protocols, [PROTOCOL, `${TOKEN_PROTOCOL}sy1.a.b`]);
  assert.equal(world.sockets[0].after, 3);
  world.sockets[0].onopen();
  world.add();
  world.tell(4);
  world.sockets[0].onclose();
  assert.deepEqual(world.states.at(-1), ["waiting", 1000]);
  world.add();
  world.add();
  world.fire();
  await settled();
  assert.equal(world.sockets[1].after, 6);
  world.tell(6);
  assert.deepEqual(world.got, upto(6), "each once");
});

test("a hole in what the socket tells is filled, in order", async () => {
  const world = outside(2);
  const stream = new Stream("t", world);
  await stream.start();
  world.sockets[0].onopen();
  for (let n = 0; n < 1500; n += 1) world.add();
  world.tell(1502);
  world.tell(1500);
  await settled();
  assert.deepEqual(world.got, upto(1502));
  assert.equal(world.lost, 0);
});

test("it waits longer each time, and at once tries again when the page wakes", async () => {
  const world = outside(1);
  const stream = new Stream("t", world);
  world.refuse = new TypeError("network");
  await stream.start();
  const waits = [];
  for (let n = 0; n < 7; n += 1) {
    waits.push(world.fire());
    await settled();
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 15_000, 30_000, 30_000]);
  world.refuse = null;
  stream.wake();
  await settled();
  world.sockets[0].onopen();
  assert.equal(stream.state, "live");
});

test("a socket that slept and is dead is found out", async () => {
  const world = outside(1);
  const stream = new Stream("t", world);
  await stream.start();
  world.sockets[0].onopen();
  stream.wake();
  await settled();
  assert.equal(world.sockets.length, 1, "it told everything");
  world.add();
  stream.wake();
  await settled();
  assert.equal(world.sockets.length, 2);
  assert.equal(world.sockets[0].closed, true);
  assert.deepEqual(world.got, [1, 2]);
});

test("a refused token is not tried again", async () => {
  const world = outside(1);
  world.refuse = Object.assign(new Error("revoked"), { final: true });
  await new Stream("t", world).start();
  assert.deepEqual(world.states.at(-1), ["refused", null]);
  assert.equal(world.timers.filter(({ action }) => action).length, 0);
});

test("what is hidden in a text is shown, and markup stays text", () => {
  assert.equal(plain("a\u202eb\u200b\u0007"), "a\u27e8U+202E\u27e9b\u27e8U+200B\u27e9\u27e8U+0007\u27e9");
  assert.equal(plain("one\r\ntwo\tthree"), "one\ntwo\tthree");
  assert.equal(plain("<img src=x onerror=alert(1)>"), "<img src=x onerror=alert(1)>");
  assert.equal(plain(null), "");
});

test("no file of the board parses HTML, evaluates text, or asks another host", () => {
  const files = readdirSync(join(ROOT, "web"), { recursive: true }).filter((name) => /\.(js|html|css)$/.test(name));
  assert.ok(files.length >= 9);
  for (const name of files) {
    const text = readFileSync(join(ROOT, "web", name), "utf8");
    const found = text.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|https?:\/\//);
    assert.equal(found?.[0], undefined, name);
    assert.doesNotMatch(text, /<script(?![^>]*src=)|\son\w+="|\sstyle="/, name);
  }
});

test("a token is taken out of the address, which keeps its view", () => {
  assert.deepEqual(takeToken("#/harbour/timeline&token=sy1.a.b"), { path: "#/harbour/timeline", token: "sy1.a.b" });
  assert.deepEqual(takeToken("#token=sy1.a.b&repo=harbour"), { path: "#/harbour", token: "sy1.a.b" });
  assert.deepEqual(takeToken("#/harbour"), { path: "#/harbour", token: null });
  assert.deepEqual(parse("#/harbour/change/I12"), { repo: "harbour", view: "change", change: "I12" });
  assert.deepEqual(parse("#/harbour/nothing"), { repo: "harbour", view: "lane", change: null });
  assert.equal(parse("#/%E0%A4%A").view, "signin");
  assert.equal(href("a/b", "change", "I 1"), "#/a%2Fb/change/I%201");
  assert.equal(repoOf(`sy1.${Buffer.from('{"repo":"harbour"}').toString("base64url")}.x`), "harbour");
  assert.equal(repoOf("no token"), null);
});

const status = (change, stage, at = 1) => ({ change, version: 1, fork: "a1", title: change, stage, reason: "", verdict: null, commit: null, at });

test("events move changes before the next status is read", () => {
  const changes = new Map([["I1", status("I1", "queued")]]);
  const moved = model.fold(changes, [
    event(1, { kind: "submitted", change: "I2", text: "<b>New</b>" }),
    event(2, { kind: "landed", change: "I1", text: "landed as 01" }),
    event(3, { kind: "landed", change: "I1", text: "landed as 01" }),
    event(4, { kind: "landed", change: "unknown" }),
    event(5, { kind: "run", text: "run main-1-1: green" }),
  ]);
  assert.deepEqual(moved.map(({ change, stage }) => [change, stage]), [["I2", "submitted"], ["I1", "landed"]]);
  assert.deepEqual([changes.get("I1").reason, changes.get("I2").title, changes.size], ["landed as 01", "<b>New</b>", 2]);
  assert.equal(model.announcement(moved), "<b>New</b>: Submitted. I1: Landed.");
  const many = Array.from({ length: 5 }, (_, n) => status(`I${n}`, "landed"));
  assert.equal(model.announcement(many), "Landed: 5.");
});

test("changes are grouped: those that need somebody first, the longest waiting first", () => {
  const all = [status("a", "landed", 1), status("b", "landed", 2), status("c", "queued", 2), status("d", "queued", 1), status("e", "needs-author")];
  const groups = model.byStage(all, 1);
  assert.deepEqual(groups.map(({ stage, total, changes }) => [stage, total, changes.map(({ change }) => change)]), [
    ["needs-author", 1, ["e"]], ["queued", 2, ["d", "c"]], ["landed", 2, ["b"]],
  ]);
});

test("a train shows its members, its runs, since when, and how long that takes", () => {
  const attempt = { lane: "main", train: 4, attempt: 1 };
  const lane = {
    entries: [{ change: "a", stage: "testing", attempt }, { change: "b", stage: "queued", attempt: null }],
    runs: [
      { run: "main-4-1", purpose: "train", attempt, changes: ["a"], runner: "r1", result: null, open: true },
      { run: "main-2-1", purpose: "train", attempt: { ...attempt, train: 2 }, changes: ["y"], runner: "r1", result: null, open: false },
      { run: "main-3-1", purpose: "train", attempt: { ...attempt, train: 3 }, changes: ["z"], runner: "r1", result: { complete: true, green: true, ran: 3, failed: [] } },
    ],
  };
  // The sentences of durable-objects/src/lane/events.rs.
  const times = model.runTimes([
    { at: 1000, text: "run main-3-1 is with r1" }, { at: 5000, text: "run main-3-1: green, 3 tests" },
    { at: 6000, text: "run main-4-1 is with r1" },
  ]);
  const [train, ...others] = model.trains(lane, times);
  assert.deepEqual([others.length, train.members, train.runs.length], [0, ["a"], 1]);
  assert.deepEqual([train.runs[0].began, train.runs[0].usual, train.runs[0].outcome], [6000, 4000, "open"]);
  assert.deepEqual(model.pastRuns(lane).map(({ outcome }) => outcome), ["incomplete", "green"]);
  const log = new Log();
  log.begin({ events: [[1, event(1, { kind: "submitted", change: "a" })], [2, event(9, { kind: "landed", change: "a" })]], next: 2 });
  assert.deepEqual(model.figures(log, 10_000), { landed: 1, atLeast: false, wait: 8000 });
});

test("a run that is not green is no good news", () => {
  const tones = ["run main-1-1: green, 3 tests", "run main-1-1: not green, 1 of 3 tests failed", "run main-1-1: incomplete: lost"].map((text) => model.tone({ kind: "run", text }));
  assert.deepEqual([...tones, model.tone({ kind: "held", text: "" })], ["run", "red", "red", "held"]);
});

test("the sentences that times are read from are those that the lane tells", () => {
  const told = readFileSync(join(ROOT, "durable-objects/src/lane/events.rs"), "utf8");
  assert.match(told, /"run \{run\} is with \{runner\}"/);
  assert.match(told, /"run \{\}: \{result\}"/);
});

test("the timeline is filtered by kind and by words, in the newest first", () => {
  const entries = [1, 2, 3].map((cursor) => ({ cursor, event: event(cursor, { kind: cursor === 2 ? "held" : "queued", change: "I1" }) }));
  const changes = new Map([["I1", { ...status("I1", "queued"), title: "Paint the Harbour" }]]);
  const found = (kind, text, most) => model.filtered(entries, { kind, text }, changes, most);
  assert.deepEqual(found("", "").entries.map(({ cursor }) => cursor), [3, 2, 1]);
  assert.deepEqual(found("held", "").entries.map(({ cursor }) => cursor), [2]);
  assert.equal(found("", "harbour").entries.length, 3);
  assert.equal(found("", "event 3").entries.length, 1);
  assert.deepEqual([found("", "", 2).entries.length, found("", "", 2).more], [2, true]);
});

test("differences are told line by line", () => {
  assert.deepEqual(diffLines("@@ -1 +1 @@\n-a\n+b\n c\n").map(({ kind }) => kind), ["hunk", "del", "add", "same"]);
  assert.deepEqual(comparedLines("a.js\n< +x\n> +y\n  -z\n").map(({ kind }) => kind), ["head", "old", "new", "same"]);
  assert.deepEqual([span(59_400), span(61_000), span(3_600_000), span(-5), usd(0), usd(1234), usd(2_500_000)],
    ["59 s", "1 min 1 s", "1 h", "0 s", "no cost", "$0.001234", "$2.50"]);
});
