/** Attacks by way of uploaded archives and looks at paths: both are carried out in the sandbox, by its own programs. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { pack } from "tar-stream";
import { NotFoundError } from "../../../shared/client/index.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { seededRandom } from "../../helpers/random.ts";
import { until } from "../../helpers/until.ts";

const { client } = await fixture(openClient());
const name = `sandgate-escape-${Math.floor(seededRandom(process.pid)() * 1e12)}`;
const sandbox = await client.sandboxes.create();

type Entry = { name: string; type?: "file" | "symlink" | "link"; linkname?: string; text?: string };

async function* archiveOf(entries: readonly Entry[]): AsyncGenerator<Uint8Array> {
  const stream = pack();
  for (const { text = "", type = "file", ...entry } of entries) stream.entry({ ...entry, type }, text);
  stream.finalize();
  yield* stream as AsyncIterable<Uint8Array>;
}

test("writes to the host by names and links in an uploaded archive", async () => {
  const ways: Entry[][] = [
    [{ name: `/tmp/${name}`, text: "out" }],
    [{ name: `../../../../../../tmp/${name}`, text: "out" }],
    [
      { name: "way", type: "symlink", linkname: "/proc/1/root/tmp" },
      { name: `way/${name}`, text: "out" },
    ],
    [
      { name: "up", type: "symlink", linkname: "../../../../../../../../tmp" },
      { name: `up/${name}`, text: "out" },
    ],
  ];
  for (const entries of ways) await sandbox.uploadArchive("/work/way", archiveOf(entries)).catch(() => {});
  assert.ok(!existsSync(`/tmp/${name}`), "nothing has got out");
  await sandbox.execute("ln -s /proc/1/root/tmp /work/linked");
  await sandbox.uploadArchive("/work/linked", archiveOf([{ name, text: "in" }]));
  assert.ok(!existsSync(`/tmp/${name}`));
});

test("sees files of the host by looking at paths through links", async () => {
  await sandbox.execute("mkdir -p /work && ln -sf /proc/1/root /work/root && ln -sf /../../../../.. /work/up");
  for (const path of [process.execPath, `${process.cwd()}/package.json`]) {
    for (const from of ["", "/work/root", "/work/up", "/proc/self/root", "/work/.."]) {
      await assert.rejects(sandbox.stat(`${from}${path}`), (error) => error instanceof NotFoundError && error.reason === "no_such_file");
    }
  }
});

test("runs a command of the looks at paths and of an archive's path", async () => {
  const paths = ["/$(touch /tmp/ran)", "/`touch /tmp/ran`", "/x; touch /tmp/ran", '/"; touch /tmp/ran; "', "/-e\ntouch /tmp/ran"];
  for (const path of paths) {
    await assert.rejects(sandbox.stat(path), NotFoundError);
    await sandbox.uploadArchive(path, archiveOf([{ name: "--checkpoint-action=exec=touch /tmp/ran", text: "" }]));
    assert.equal((await sandbox.stat(path)).type, "directory");
  }
  await assert.rejects(sandbox.stat("/tmp/ran"), NotFoundError);
});

test("leaves programs running that no command started, by a tar of one's own", async () => {
  await sandbox.execute("mv /bin/tar /bin/real-tar && printf '#!/bin/sh\\nexec sleep 1234567\\n' > /bin/tar && chmod 755 /bin/tar");
  const leaving = new AbortController();
  const upload = sandbox.uploadArchive("/work/never", archiveOf([{ name: "file", text: "text" }]), { signal: leaving.signal });
  const running = async (): Promise<boolean> => (await sandbox.execute("pgrep -f 'sleep 123456[7]'")).exit_code === 0;
  await until("the program runs", running);
  leaving.abort(new Error("left"));
  await assert.rejects(upload, /left/);
  await until("it has ended", async () => !(await running()));
  await sandbox.execute("mv /bin/real-tar /bin/tar");
  // It is removed by the next program, once this one has ended.
  await until("nothing of the upload is left", async () => (await sandbox.execute("ls -A /tmp | grep sandgate-upload")).exit_code === 1);
});
