/** The client library's streams against a real installation: output while it is made, files, progress, back pressure. */
import assert from "node:assert/strict";
import { createReadStream, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BadRequestError, NotFoundError, SandgateError, UnprocessableEntityError } from "../../../shared/client/index.ts";
import { openClient } from "../../helpers/client.ts";
import { sha256 } from "../../helpers/files.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { residentBytes } from "../../helpers/prepare.ts";
import { Mark } from "../../helpers/sandboxes.ts";
import { until } from "../../helpers/until.ts";

const { path: folder } = fixture(temporaryFolder("client"));
const { client } = await fixture(openClient());
const sandbox = await client.sandboxes.create();

const MiB = 1024 * 1024;
/** Bytes that no compression and no offset error survives. */
const noise = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, index) => (Math.imul(index, 2_654_435_761) >>> 13) & 0xff);

test("output comes in order while the command runs, and then its exit code", async () => {
  await sandbox.execute("mkdir -p /work && mkfifo /work/go");
  const again = sandbox.executeAsync("echo one; echo two >&2; read line < /work/go; echo $line; exit 7");
  const seen: object[] = [];
  for await (const chunk of again) {
    seen.push(chunk);
    if (chunk.stderr) await sandbox.execute("echo three > /work/go");
  }
  const text = (name: "stdout" | "stderr"): string => seen.map((chunk) => (chunk as Record<string, string>)[name] ?? "").join("");
  assert.deepEqual([text("stdout"), text("stderr")], ["one\nthree\n", "two\n"]);
  assert.deepEqual(await again.result, { exit_code: 7 });
  await assert.rejects(async () => {
    for await (const _chunk of again) assert.fail("it was read before");
  }, /only once/);
});

test("callbacks get the output without a loop, and one that is slow is waited for", async () => {
  let [stdout, stderr, running, most] = ["", "", 0, 0];
  const onStdout = async (text: string): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    stdout += text;
    running--;
  };
  const { exit_code } = await sandbox.executeAsync("seq 20000; echo end >&2", { onStdout, onStderr: (text) => (stderr += text) }).result;
  assert.deepEqual([exit_code, stderr, most], [0, "end\n", 1]);
  assert.equal(stdout, Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(""));
});

test("a callback that throws ends the command", async () => {
  const mark = new Mark();
  const onStdout = (): never => {
    throw new Error("not that");
  };
  await assert.rejects(sandbox.executeAsync("echo x; sleep 1000", { onStdout, env: mark.env }).result, /not that/);
  await mark.gone();
});

test("leaving the loop ends the command and what it started", async () => {
  const mark = new Mark();
  const execution = sandbox.executeAsync("sleep 1000 & echo started; sleep 1000", { env: mark.env });
  for await (const { stdout } of execution) {
    assert.equal(stdout, "started\n");
    assert.ok(mark.living().length > 0);
    break;
  }
  await mark.gone();
  await assert.rejects(execution.result, SandgateError);
});

test("output that is not read does not pile up here", async () => {
  const execution = sandbox.executeAsync("yes | head -c 300000000");
  const before = residentBytes(process.pid);
  let bytes = 0;
  for await (const { stdout = "" } of execution) {
    bytes += stdout.length;
    if (bytes === stdout.length) await new Promise((resolve) => setTimeout(resolve, 500));
    if (bytes > 20 * MiB) break;
  }
  assert.ok(residentBytes(process.pid) - before < 150 * MiB, `grew by ${residentBytes(process.pid) - before} bytes`);
});

test("what the API refuses is an error before any output", async () => {
  await assert.rejects(sandbox.executeAsync("true", { working_dir: "relative" }).result, BadRequestError);
  await assert.rejects(sandbox.executeAsync("true", { working_dir: "/none/such" }).result, UnprocessableEntityError);
});

test("files are uploaded from all that holds bytes, and their mode is set", async () => {
  const local = join(folder, "up.bin");
  const bytes = noise(3 * MiB);
  writeFileSync(local, bytes);
  const sources = {
    bytes,
    buffer: bytes.buffer as ArrayBuffer,
    blob: new Blob([bytes as Uint8Array<ArrayBuffer>]),
    web: new Blob([bytes as Uint8Array<ArrayBuffer>]).stream(),
    node: createReadStream(local),
  };
  for (const [name, source] of Object.entries(sources)) {
    const progress: [number, number | undefined][] = [];
    const answer = await sandbox.upload(`/work/up/${name}`, source, { mode: "750", onProgress: (...seen) => progress.push(seen) });
    assert.deepEqual([answer.path, answer.size], [`/work/up/${name}`, bytes.length]);
    assert.deepEqual([progress[0]?.[0], progress.at(-1)?.[0]], [0, bytes.length]);
    assert.ok(progress.length > 3 && progress.every(([done], index) => index === 0 || done > (progress[index - 1]?.[0] ?? 0)), name);
  }
  await sandbox.uploadFile(local, "/work/up/file", { mode: "750" });
  assert.equal((await sandbox.upload("/work/up/text", "grüße\n")).size, 8);
  assert.equal((await sandbox.upload("/work/up/empty", "")).size, 0);
  const { stdout } = await sandbox.execute("cd /work/up && sha256sum blob buffer bytes file node web && stat -c %a file && cat text");
  assert.equal(stdout, `${["blob", "buffer", "bytes", "file", "node", "web"].map((name) => `${sha256(bytes)}  ${name}\n`).join("")}750\ngrüße\n`);
});

test("files are downloaded as bytes, as streams and to a file, with progress", async () => {
  const bytes = noise(2 * MiB + 1);
  await sandbox.upload("/work/down.bin", bytes);
  const seen: [number, number | undefined][] = [];
  const whole = await sandbox.download("/work/down.bin", { onProgress: (...progress) => seen.push(progress) });
  assert.equal(whole.size, bytes.length);
  assert.equal(sha256(await whole.bytes()), sha256(bytes));
  assert.deepEqual(
    [seen[0], seen.at(-1)],
    [
      [0, bytes.length],
      [bytes.length, bytes.length],
    ],
  );
  assert.equal(sha256(new Uint8Array(await new Response((await sandbox.download("/work/down.bin")).stream()).arrayBuffer())), sha256(bytes));
  const local = join(folder, "down.bin");
  writeFileSync(local, "before");
  assert.equal(await sandbox.downloadFile("/work/down.bin", local), bytes.length);
  assert.equal(sha256(readFileSync(local)), sha256(bytes));
  const tar = await (await sandbox.download("/work/up", { archive: "tar" })).bytes();
  assert.ok(new TextDecoder("latin1").decode(tar.subarray(257, 262)) === "ustar" && tar.length % 512 === 0);
});

test("a download that fails or is given up leaves what was there, and nothing else", async () => {
  const local = join(folder, "kept.txt");
  writeFileSync(local, "before");
  await assert.rejects(sandbox.downloadFile("/none/such", local), NotFoundError);
  await assert.rejects(sandbox.downloadFile("/work", local), UnprocessableEntityError);
  const controller = new AbortController();
  await sandbox.execute("head -c 50000000 /dev/zero > /work/large");
  const reason = new Error("enough");
  const onProgress = (done: number): void => void (done > MiB && controller.abort(reason));
  await assert.rejects(sandbox.downloadFile("/work/large", local, { signal: controller.signal, onProgress }), reason);
  assert.equal(readFileSync(local, "utf8"), "before");
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes("kept")),
    ["kept.txt"],
  );
});

test("an upload that is given up leaves no file", async () => {
  const controller = new AbortController();
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(64 * 1024);
  };
  const onProgress = (done: number): void => void (done > 4 * MiB && controller.abort(new Error("enough")));
  await assert.rejects(sandbox.upload("/work/given-up", endless(), { signal: controller.signal, onProgress }), /enough/);
  await until("nothing of it is left", async () => (await sandbox.execute("ls -A /work | grep -c -e given-up -e sandgate-upload")).stdout === "0\n");
});
