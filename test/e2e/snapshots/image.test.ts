/** A snapshot of a sandbox whose image no worker has any more, and no registry ever had. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { openSnapshotBucket, SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const image = `localhost/sandgate-test/derived-${process.pid}:latest`;
const maker = `sandgate-test-derived-${process.pid}`;

const stack = await fixture(
  startStack({
    name: "snap-image",
    workers: 2,
    settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE_BYTES_PER_S: "1073741824", SANDGATE_LOCAL_IMAGES: image },
  }),
);
const api = new Api(stack);
const calls = new SnapshotCalls(api);
const bucket = await fixture(openSnapshotBucket(stack.natsUrl));
atEnd(async () => {
  await stack.podman("rm", "--force", "--time", "0", "--ignore", maker);
  await stack.podman("rmi", "--force", "--ignore", image).catch(() => {});
});
await stack.podman(
  "run",
  "--name",
  maker,
  "--pull",
  "never",
  "--network",
  "none",
  stack.instance.config.defaultImage,
  "sh",
  "-c",
  "echo derived > /etc/derived; rm /etc/issue",
);
await stack.podman("commit", "--quiet", "--change", "ENV DERIVED=yes", "--change", "WORKDIR /srv/made", maker, image);
await stack.podman("rm", maker);
const look = `cat /etc/derived /root/mine; test ! -e /etc/issue && echo "$DERIVED $PWD"`;

test("another worker restores it from the archive, image and all, and what it restores can be copied on", async () => {
  const source = await api.create({ image });
  await api.execute(source, "echo mine > /root/mine");
  const expected = "derived\nmine\nyes /srv/made\n";
  assert.equal((await api.execute(source, look)).stdout, expected);
  const snapshot = await calls.take(source);
  await until("snapshot and image are archived", async () => (await bucket.read(snapshot.id))?.archived === "done", 120_000);
  const owner = (await bucket.read(snapshot.id))?.worker_id;
  await api.delete(source);
  await stack.podman("rmi", "--force", image);
  await stack.workers.find(({ spec }) => spec.env.SANDGATE_WORKER_ID === owner)?.kill9();

  const restored = await until("another worker restores it", async () => {
    const { status, body } = await calls.restore(snapshot.id);
    return status === 201 && body.id;
  });
  assert.equal((await api.execute(restored, look)).stdout, expected);
  await api.execute(restored, "echo more > /root/more");
  const second = await calls.take(restored);
  const again = await calls.restored(second.id);
  assert.equal((await api.execute(again.id, `${look}; cat /root/more`)).stdout, `${expected}more\n`);
});
