// The events endpoint and the board's files, as a browser meets them.
import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { get } from "node:http";
import { test } from "node:test";
import { folder, serve } from "./lib.mjs";

const SECRET = "a-secret-of-tests";

function tokenOf(id, scopes) {
  const claims = { id, repo: "harbour", scopes, expires: Date.now() + 3_600_000 };
  const open = `sy1.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  return `${open}.${createHmac("sha256", SECRET).update(open).digest("base64url")}`;
}

/** Opens a WebSocket by hand: the status, the chosen protocol, and the first message. */
function socket(url, protocols) {
  return new Promise((resolve, reject) => {
    const headers = {
      connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"), "sec-websocket-protocol": protocols.join(", "),
    };
    const request = get(`${url}/api/repos/harbour/events?after=0`, { headers });
    request.on("error", reject);
    request.on("response", (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode });
    });
    request.on("upgrade", (answer, stream, head) => {
      const told = (bytes) => {
        stream.destroy();
        // A frame of the server: two bytes, two more for a longer text, then the text.
        const text = bytes.subarray(bytes[1] === 126 ? 4 : 2).toString().split("\x81")[0];
        resolve({ status: 101, protocol: answer.headers["sec-websocket-protocol"], text });
      };
      if (head.length > 2) told(head);
      else stream.once("data", told);
    });
  });
}

test("a browser's socket brings its token as a protocol; a revoked one opens nothing", { timeout: 60_000 }, async (t) => {
  const { url } = await serve(t, "--state", folder(t), "--secret", SECRET).next();
  const call = (verb, path, token, body) => fetch(`${url}${path}`, {
    method: verb, headers: { authorization: `Bearer ${token}`, "idempotency-key": path, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const platform = tokenOf("platform", ["admin"]).split(".");
  const claims = JSON.parse(Buffer.from(platform[1], "base64url").toString());
  delete claims.repo;
  const open = `sy1.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  const admin = `${open}.${createHmac("sha256", SECRET).update(open).digest("base64url")}`;
  assert.equal((await call("POST", "/api/repos", admin, { name: "harbour" })).status, 200);
  assert.equal((await call("POST", "/api/repos/harbour/freeze", admin, { reason: "for the test" })).status, 200);
  const page = async (query) => (await call("GET", `/api/repos/harbour/events${query}`, admin)).json();
  for (let n = 0; n < 100 && (await page("")).events.length === 0; n += 1) await new Promise((done) => setTimeout(done, 50));
  const newest = await page("?last=1");
  assert.deepEqual([newest.events.length, newest.events[0][1].kind], [1, "frozen"]);

  const made = await (await call("POST", "/api/repos/harbour/tokens", admin, { scopes: ["read"], ttl_seconds: 600 })).json();
  const offer = (token) => ["switchyard.events", `switchyard.token.${token}`];
  const opened = await socket(url, offer(made.token));
  assert.deepEqual([opened.status, opened.protocol], [101, "switchyard.events"]);
  assert.equal(JSON.parse(opened.text)[1].text, "for the test");
  assert.equal((await socket(url, ["switchyard.events"])).status, 401);
  assert.equal((await socket(url, offer("sy1.e30.AAAA"))).status, 401);
  assert.equal((await call("DELETE", `/api/repos/harbour/tokens/${made.id}`, admin)).status, 200);
  assert.equal((await socket(url, offer(made.token))).status, 401);
  const stream = { authorization: `Bearer ${made.token}`, accept: "text/event-stream" };
  assert.equal((await fetch(`${url}/api/repos/harbour/events`, { headers: stream })).status, 401);
});

test("the board's files may run nothing but themselves", { timeout: 60_000 }, async (t) => {
  const { url } = await serve(t, "--state", folder(t)).next();
  for (const path of ["/", "/board.css", "/board/app.js", "/nothing"]) {
    const answer = await fetch(`${url}${path}`);
    const policy = answer.headers.get("content-security-policy");
    assert.equal(answer.status, path === "/nothing" ? 404 : 200, path);
    assert.match(policy, /default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/, path);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  }
});
