/**
 * Chromium without an observer. Playwright receives the body of every request, which takes longer than sending it. Here
 * the benchmark controls a page by evaluating expressions in it.
 */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const executable = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** A browser with a profile of its own. */
export async function bareBrowser() {
  const profile = await mkdtemp(join(tmpdir(), "keywright-browser."));
  const flags = ["--headless", "--no-sandbox", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "--no-first-run", "about:blank"];
  const child = spawn(executable, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [to, from] = [child.stdio[3], child.stdio[4]];
  const pending = new Map();
  let [next, rest] = [0, Buffer.alloc(0)];
  from.on("data", (data) => {
    rest = Buffer.concat([rest, data]);
    for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
      const message = JSON.parse(rest.subarray(0, end).toString());
      rest = rest.subarray(end + 1);
      const call = pending.get(message.id);
      pending.delete(message.id);
      if (message.error) call?.reject(new Error(message.error.message));
      else call?.resolve(message.result);
    }
  });
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      const id = ++next;
      pending.set(id, { resolve, reject });
      to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });

  /** A tab, and functions that evaluate an expression in it, or wait for a promise of it. */
  const open = async (url) => {
    const { targetId } = await send("Target.createTarget", { url });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    const evaluate = async (expression) => {
      const params = { expression, awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = await send("Runtime.evaluate", params, sessionId);
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    };
    // A tab that is being opened has no evaluation context.
    while (!(await evaluate("location.href").catch(() => "")).startsWith(url)) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return { evaluate };
  };

  const close = async () => {
    const ended = new Promise((resolve) => child.on("exit", resolve));
    await send("Browser.close");
    await ended;
    await rm(profile, { recursive: true, force: true });
  };
  return { open, close, version: (await send("Browser.getVersion")).product };
}
