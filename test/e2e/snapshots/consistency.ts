/** Snapshots of sandboxes in which programs write: every restore holds the files of one moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type Chunk, chunksOf } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import type { Stack } from "../../helpers/stack.ts";
import { pythonCommand, runPython } from "../../helpers/trees.ts";

const restoresAtOnce = 4;
const seconds = 280;

export function consistencyTests(stack: Stack): void {
  const api = new Api(stack);
  const calls = new SnapshotCalls(api);

  /** A sandbox in which a program runs, and the program's output as it comes. */
  async function running(command: string): Promise<{ id: string; output: AsyncGenerator<Chunk> }> {
    const id = await api.create({ resources: { cpus: 1, memory: 512, storage: 10 }, network: { access: "none" } });
    return { id, output: chunksOf(await api.stream(id, command, { timeout: seconds })) };
  }

  /** Takes snapshots one after another, and looks into a restored sandbox of each. */
  async function inspectEach(id: string, kinds: readonly { quick: boolean }[], look: string): Promise<string[]> {
    const found: Promise<string>[] = [];
    for (const kind of kinds) {
      const { id: snapshot } = await calls.take(id, kind);
      const inspected = inspect(snapshot, look);
      inspected.catch(() => {}); // Awaited below.
      found.push(inspected);
      if (found.length % restoresAtOnce === 0) await Promise.all(found);
    }
    return Promise.all(found);
  }

  async function inspect(snapshot: string, look: string): Promise<string> {
    const restored = await calls.restored(snapshot);
    const stdout = await runPython(api, restored.id, look);
    await api.delete(restored.id);
    expectOk(await calls.delete(snapshot));
    return stdout;
  }

  const kindsOf = (application: number, quick: number): { quick: boolean }[] => [
    ...Array.from({ length: application }, () => ({ quick: false })),
    ...Array.from({ length: quick }, () => ({ quick: true })),
  ];

  /** Appends record n to one file, then to the other; the second thread's program goes on after its first thread has ended. */
  const writer = (inThread: boolean): string => `
import ctypes, os, threading, time, zlib
os.makedirs("/srv/z", exist_ok=True)
files = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for path in ("/root/a", "/srv/z/b")]
def write():
    n = 0
    while True:
        body = b"%08d %s" % (n, b"r" * (n % 90))
        for file in files: os.write(file, body + b" %08x\\n" % zlib.crc32(body))
        n += 1
        if n == 100: print("writing", flush=True)
        time.sleep(0.0003)
if ${inThread ? "True" : "False"}:
    threading.Thread(target=write).start()
    ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)
write()
`;

  const checkRecords = `
import zlib
def records(path):
    lines = open(path, "rb").read().split(b"\\n")
    assert lines.pop() == b"", "the last record is not whole"
    for n, line in enumerate(lines):
        body, crc = line.rsplit(b" ", 1)
        assert int(body.split(b" ")[0]) == n and int(crc, 16) == zlib.crc32(body), (path, n, line)
    return len(lines)
a, b = records("/root/a"), records("/srv/z/b")
assert a - b in (0, 1), (a, b)
print(a)
`;

  /** Files that take a while to be copied, so that what is not stopped would write meanwhile. */
  const ballast = (megabytes: number): string => `for n in 1 2 3 4; do yes $n | head -c ${megabytes / 4}M > /root/ballast-$n; done`;

  for (const [what, inThread, application, quick] of [
    ["a program", false, 4, 2],
    ["a program whose first thread has ended", true, 2, 1],
  ] as const) {
    test(`what ${what} writes to two files is in every restore a prefix of what it wrote, of both kinds of snapshots`, async () => {
      const { id, output } = await running(`${ballast(inThread ? 120 : 24)}; ${pythonCommand(writer(inThread))}`);
      await output.next();
      const counts = (await inspectEach(id, kindsOf(application, quick), checkRecords)).map(Number);
      assert.ok(
        counts.every((count, index) => index === 0 || count >= (counts[index - 1] as number)) && (counts.at(-1) as number) > (counts[0] as number),
        counts.join(),
      );
      await api.delete(id);
    });
  }

  const database = `
import multiprocessing, os, sqlite3, time
path = "/root/data.db"
connection = sqlite3.connect(path)
connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE a (n INTEGER PRIMARY KEY, text TEXT); CREATE TABLE b (n INTEGER PRIMARY KEY, text TEXT);")
connection.close()
def write():
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    while True:
        connection.execute("BEGIN IMMEDIATE")
        for table in "ab": connection.execute("INSERT INTO %s (text) VALUES (?)" % table, (os.urandom(200).hex(),))
        connection.execute("COMMIT")
for _ in range(3): multiprocessing.Process(target=write).start()
connection = sqlite3.connect(path, timeout=60)
while connection.execute("SELECT count(*) FROM a").fetchone()[0] == 0: time.sleep(0.05)
print("writing", flush=True)
`;

  const checkDatabase = `
import os, sqlite3
assert os.path.exists("/root/data.db-wal")
connection = sqlite3.connect("/root/data.db")
assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
a, b = (connection.execute("SELECT count(*) FROM %s" % table).fetchone()[0] for table in "ab")
assert a == b, (a, b)
print(a)
`;

  test("a database in WAL mode that several processes write to is whole in every restore, of both kinds of snapshots", async () => {
    const { id, output } = await running(pythonCommand(database));
    await output.next();
    const counts = (await inspectEach(id, kindsOf(3, 2), checkDatabase)).map(Number);
    assert.ok(
      counts.every((count, index) => index === 0 || count >= (counts[index - 1] as number)) && (counts.at(-1) as number) > (counts[0] as number),
      counts.join(),
    );
    await api.delete(id);
  });
}
