/** Paths and links of all kinds stay inside the sandbox: canaries on the host are neither read nor written. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { download, untilNothingIsLeft, uploadForm, uploadRaw } from "../../helpers/files.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const secret = `canary-${randomBytes(16).toString("hex")}`;

// Open to everybody on the host: only the sandbox keeps the worker from it.
const { path: hostDir } = fixture(temporaryFolder("canary", 0o777, "/tmp"));
mkdirSync(join(hostDir, "sub"));
chmodSync(join(hostDir, "sub"), 0o777);
writeFileSync(join(hostDir, "secret"), secret);
chmodSync(join(hostDir, "secret"), 0o666);
const id = await api.create({ name: "links" });
atEnd(() => api.delete(id));

const run = async (command: string): Promise<string> => (await api.execute(id, command)).stdout;

function assertHostUntouched(): void {
  assert.deepEqual(readdirSync(hostDir).sort(), ["secret", "sub"]);
  assert.deepEqual(readdirSync(join(hostDir, "sub")), []);
  assert.equal(readFileSync(join(hostDir, "secret"), "utf8"), secret);
}

/** Paths that lead to the canaries' folder if anything resolves them on the host. */
function waysTo(target: string): string[] {
  const up = "/..".repeat(12);
  return [
    target,
    `${up}${target}`,
    `/root${up}${target}`,
    `/./${target}`,
    `/proc/self/root${target}`,
    `/proc/1/root${target}`,
    `/proc/self/cwd${up}${target}`,
    `/proc/1/cwd${up}${target}`,
    ...Array.from({ length: 24 }, (_, fd) => `/proc/self/fd/${fd}${up}${target}`),
    `/tmp/absolute${target}`,
    `/tmp/relative${target}`,
    `/tmp/proc-link/root${target}`,
    `/dev/fd/10${up}${target}`,
  ];
}
const links = "ln -sfn / /tmp/absolute; ln -sfn ../../../../../../../.. /tmp/relative; ln -sfn /proc/1 /tmp/proc-link";

test("no path and no link reads a file of the host", async () => {
  await run(links);
  for (const path of waysTo(join(hostDir, "secret"))) {
    const { status, body } = await download(api, id, path);
    assert.ok(status === 404 || status === 422, `${path}: ${status}`);
    assert.ok(!body.includes(secret), path);
  }
  await run(`mkdir -p /root/tree && ln -sfn ${hostDir} /root/tree/dir && ln -sfn ${hostDir}/secret /root/tree/file`);
  for (const path of ["/root/tree/file", "/root/tree/dir/secret"]) assert.equal((await download(api, id, path)).status, 404);
  for (const path of ["/root/tree", "/root/tree/dir", `/proc/1/root${hostDir}`]) {
    assert.ok(!(await download(api, id, path, "&archive=tar")).body.includes(secret), path);
  }
});

test("no path and no link writes to the host", async () => {
  await run(`${links}; ln -sfn ${hostDir}/secret /root/to-secret; ln -sfn ${hostDir} /root/to-dir; ln -sfn ${hostDir}/secret /tmp/planted`);
  for (const path of [...waysTo(join(hostDir, "secret")), ...waysTo(join(hostDir, "sub/planted")), "/root/to-secret", "/root/to-dir/new", "/tmp/planted"]) {
    const { status } = await uploadRaw(api, id, path, "overwritten");
    assert.ok([200, 422].includes(status), `${path}: ${status}`);
  }
  await uploadForm(api, id, [
    ["file", new Blob(["overwritten"])],
    ["path", `/tmp/absolute${hostDir}/from-form`],
  ]);
  assertHostUntouched();
  await run(`rm -rf ${hostDir}`);
});

test("a temporary folder that is a link does not lead uploads to the host", async () => {
  await run(`mv /tmp /tmp.kept; ln -s ${hostDir} /tmp`);
  assert.notEqual((await uploadRaw(api, id, "/root/through-link", "x")).status, 500);
  await run("rm /tmp; mv /tmp.kept /tmp");
  assertHostUntouched();
});

test("a link that is swapped all the time while files come and go changes nothing on the host", async () => {
  await run("mkdir -p /root/real/sub && echo inside > /root/real/secret");
  const swapping = await api.stream(id, `echo begun; while :; do ln -sfn ${hostDir} /root/swap; ln -sfn /root/real /root/swap; rm -f /root/swap; done`);
  try {
    for (let round = 0; round < 25; round++) {
      const [down, up, deep] = await Promise.all([
        download(api, id, "/root/swap/secret"),
        uploadRaw(api, id, "/root/swap/planted", "planted"),
        uploadRaw(api, id, "/root/swap", "in place of the link"),
      ]);
      assert.ok([200, 404, 422].includes(down.status), `download: ${down.status}`);
      if (down.status === 200) assert.equal(down.body.toString(), "inside\n");
      for (const { status } of [up, deep]) assert.ok([200, 422].includes(status), `upload: ${status}`);
    }
  } finally {
    await swapping.body?.cancel();
  }
  assertHostUntouched();
});

test("a regular file that turns into a fifo while it is opened never holds a download for good", async () => {
  const swapping = await api.stream(
    id,
    "cd /root; echo file > real; mkfifo pipe; ln real flip; echo begun; while :; do ln -f real swapped; mv -f swapped flip; ln -f pipe swapped; mv -f swapped flip; done",
  );
  try {
    const answers = await Promise.all(Array.from({ length: 16 }, () => download(api, id, "/root/flip")));
    for (const { status, body } of answers) {
      assert.ok([200, 404, 422].includes(status), String(status));
      if (status === 200) assert.ok(["file\n", ""].includes(body.toString()));
    }
  } finally {
    await swapping.body?.cancel();
  }
  await untilNothingIsLeft(api, id, "/root");
});

test("the API is not misled by a sandbox that replaced its own tools", async () => {
  const odd = await api.create();
  try {
    // Where they read a file, five bytes are announced and ten come.
    const tools = { stat: "5", cat: "1234567890" };
    for (const [name, says] of Object.entries(tools)) await api.execute(odd, `printf '#!/bin/sh\\necho ${says}' > /usr/bin/${name}; chmod +x /usr/bin/${name}`);
    await api.execute(odd, "truncate -s 70000 /root/one");
    assert.equal((await download(api, odd, "/root/one")).body.length, 70_000);
    await api.execute(odd, "kill -KILL $(grep -lx .sandgate-exec /proc/[0-9]*/comm | cut -d/ -f3)");
    // The client sees a broken connection, or no more than five.
    const answer = await download(api, odd, "/root/one").catch(() => undefined);
    assert.ok(answer === undefined || answer.body.length === 5, `${answer?.body.length} bytes`);
    await api.call("GET", "/healthz");
  } finally {
    await api.delete(odd);
  }
});
