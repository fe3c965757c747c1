/** Small files, for which no program is started: they are treated like large ones in everything. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { type Answer, Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { download, untilNothingIsLeft, uploadRaw } from "../../helpers/files.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
const id = await sandboxes.make();

const run = async (command: string): Promise<string> => (await api.execute(id, command)).stdout;

/** The size of the largest small file, and of the smallest large one. */
const sizes = { small: 65_536, large: 65_537 } as const;
type Size = keyof typeof sizes;

test("small files come and go without a program of the sandbox", async () => {
  const bare = await sandboxes.make();
  await api.execute(bare, "mkdir /opt/away; cd /usr/bin; mv cat head stat mkdir chmod mv rm /opt/away");
  for (const size of [0, 1, 20, 4_096, sizes.small]) {
    const content = randomBytes(size);
    assert.deepEqual(expectOk(await uploadRaw(api, bare, `/root/new/${size}`, content)), { message: "File uploaded", path: `/root/new/${size}`, size });
    const { status, headers, body } = await download(api, bare, `/root/new/${size}`);
    assert.deepEqual([status, headers.get("content-length")], [200, String(size)]);
    assert.ok(body.equals(content), `${size} bytes`);
  }
  expectError(await uploadRaw(api, bare, "/root/new/large", randomBytes(sizes.large)), "unprocessable");
});

/** What is made in a folder before a file is put somewhere, and where that is. */
const places: Readonly<Record<string, { readonly before?: string; readonly path: string; readonly query?: string }>> = {
  "a new name": { path: "new" },
  "a mode": { path: "new", query: "&mode=0711" },
  "a mode with the bits of another user and group": { path: "new", query: "&mode=6755" },
  "the sticky bit": { path: "new", query: "&mode=1644" },
  "a file of another mode and owner": { before: "echo old > old; chmod 600 old; chown 7:8 old", path: "old" },
  "a file with another name": { before: "echo old > old; ln old other", path: "old" },
  "a link to a file": { before: "echo old > old; ln -s old link", path: "link" },
  "a link to nothing": { before: "ln -s none link", path: "link" },
  "a link to itself": { before: "ln -s link link", path: "link" },
  "a link to a folder": { before: "mkdir dir; ln -s dir link", path: "link" },
  "a path through a link": { before: "mkdir dir; ln -s dir link", path: "link/new" },
  "a path through a link to nothing": { before: "ln -s none link", path: "link/new" },
  "missing folders": { path: "a/b//c/../d/new" },
  "missing folders in a folder of a group": { before: "mkdir dir; chgrp 9 dir; chmod 2775 dir", path: "dir/sub/new" },
  "a folder of a group": { before: "mkdir dir; chgrp 9 dir; chmod 2775 dir", path: "dir/new" },
  "a folder": { before: "mkdir dir", path: "dir" },
  "a folder by its end": { before: "mkdir dir", path: "dir/" },
  "a folder by its dot": { before: "mkdir dir", path: "dir/." },
  "a path through a file": { before: "echo old > old", path: "old/new" },
  "a path far through a file": { before: "echo old > old", path: "old/far/new" },
  "a named pipe": { before: "mkfifo pipe", path: "pipe" },
  "a socket": { before: "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'", path: "socket" },
  "a name that is too long": { path: "x".repeat(256) },
  "a folder whose name is too long": { path: `${"x".repeat(256)}/new` },
  "a path that is too long": { path: `${`${"é".repeat(120)}/`.repeat(30)}new` },
  "a folder that nobody may write to": { before: "mkdir dir; chmod 555 dir", path: "dir/new" },
};

/** What a client is told, without what differs from call to call. */
function told({ status, body }: Answer): string {
  return JSON.stringify([status, body], (name, value) => (name === "request_id" || name === "size" ? undefined : value));
}

/** Everything in a folder with its mode, owner and group, without what tells a large file from a small one. */
const listing = (folder: string): string => `cd ${folder} && find . -printf '%P %y %#m %U:%G %n %l\\n' | cut -c 1-300 | sort`;

for (const [what, { before, path, query }] of Object.entries(places)) {
  test(`a small file is put in the place of ${what} as a large one is`, async () => {
    const done = async (size: Size): Promise<object> => {
      const folder = `/root/places/${size}`;
      await run(`rm -rf ${folder}; mkdir -p ${folder}; cd ${folder}; ${before ?? ""}`);
      const answer = await uploadRaw(api, id, `${folder}/${path}`, Buffer.alloc(sizes[size]), query);
      return { told: told(answer).replaceAll(size, ""), left: await run(listing(folder)) };
    };
    assert.deepEqual(await done("small"), await done("large"));
    await untilNothingIsLeft(api, id, "-R /root/places");
  });
}

test("where nothing can be written, a small file is refused as a large one is", async () => {
  for (const path of ["/run/.sandgate/new", "/proc/new", "/sys/new", "/proc/self/fd/new", "/dev/null/new", "/run/.sandgate-exec"]) {
    const [small, large] = await Promise.all([uploadRaw(api, id, path, "x"), uploadRaw(api, id, path, Buffer.alloc(sizes.large))]);
    assert.equal(told(small), told(large), path);
    assert.equal(small.status, 422, path);
  }
});

test("where there is no room, a small file is refused for that, the old one stays, and nothing is left", async () => {
  await run("echo old > /dev/shm/kept; cat /dev/zero > /dev/shm/full 2>/dev/null");
  expectError(await uploadRaw(api, id, "/dev/shm/kept", Buffer.alloc(sizes.small)), "insufficient_storage");
  assert.equal(await run("cat /dev/shm/kept; rm /dev/shm/full"), "old\n");
  await untilNothingIsLeft(api, id, "/dev/shm");
});

test("a small file of any kind comes as a large one would", async () => {
  await run("cd /root; echo text > there; ln -s there to-there; ln -s none to-none; mkfifo some-pipe; : > empty; echo held > /dev/shm/held");
  for (const [path, text] of Object.entries({ "/root/there": "text\n", "/root/to-there": "text\n", "/root/empty": "", "/dev/shm/held": "held\n" })) {
    const { status, headers, body } = await download(api, id, path);
    assert.deepEqual([status, headers.get("content-length"), body.toString()], [200, String(text.length), text], path);
  }
  for (const [path, code, reason] of [
    ["/root/to-none", "not_found", "no_such_file"],
    ["/root/there/none", "not_found", "no_such_file"],
    ["/root", "unprocessable", "is_directory"],
    ["/root/some-pipe", "unprocessable", "not_a_file"],
    ["/dev/zero", "unprocessable", "not_a_file"],
  ] as const) {
    expectError((await download(api, id, path)).error, code, undefined, reason);
  }
});

test("what the kernel makes up on reading comes whole, and is that of a program and not of the server", async () => {
  const { body } = await download(api, id, "/proc/self/status");
  assert.match(body.toString(), /^Name:\s+sh\n/);
  assert.match((await download(api, id, "/proc/version")).body.toString(), /^Linux version /);
});

test("while the server is ended, stopped and started, small files come and go all the same", async () => {
  const served = "cat /proc/$PPID/comm";
  const server = "$(grep -lx .sandgate-exec /proc/[0-9]*/comm | cut -d/ -f3)";
  for (const signal of ["KILL", "STOP"]) {
    await until("the server is there", async () => (await run(served)) === ".sandgate-keep\n");
    await run(`kill -${signal} ${server}`);
    expectOk(await uploadRaw(api, id, "/root/meanwhile", signal));
    assert.equal((await download(api, id, "/root/meanwhile")).body.toString(), signal);
  }
  await untilNothingIsLeft(api, id, "/root");
});

test("many small files at once are each themselves", async () => {
  const names = Array.from({ length: 48 }, (_, index) => `/root/crowd/${index}`);
  const contentOf = (name: string): string => name.repeat(Number(name.split("/").at(-1)));
  await Promise.all(names.map(async (name) => expectOk(await uploadRaw(api, id, name, contentOf(name)))));
  const bodies = await Promise.all(names.map(async (name) => (await download(api, id, name)).body.toString()));
  assert.deepEqual(bodies, names.map(contentOf));
  await untilNothingIsLeft(api, id, "/root/crowd");
});
