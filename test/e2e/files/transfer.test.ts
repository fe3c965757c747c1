/** Uploads and downloads in normal use. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { download, sha256, untilNothingIsLeft, uploadForm, uploadRaw } from "../../helpers/files.ts";
import { atEnd } from "../../helpers/fixture.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());

const id = await api.create({ name: "files" });
atEnd(() => api.delete(id));

const run = async (command: string): Promise<string> => (await api.execute(id, command)).stdout;
const blob = (text: string): Blob => new Blob([text]);

for (const [order, fields] of [
  [
    "path first",
    [
      ["path", "/root/form"],
      ["file", blob("one")],
    ],
  ],
  [
    "file first",
    [
      ["file", blob("two")],
      ["path", "/root/form"],
    ],
  ],
  [
    "the mode around",
    [
      ["mode", "600"],
      ["file", blob("three")],
      ["path", "/root/form"],
    ],
  ],
] as [string, [string, string | Blob][]][]) {
  test(`a multipart upload is taken with its fields in any order: ${order}`, async () => {
    const content = await (Object.fromEntries(fields).file as Blob).text();
    assert.deepEqual(expectOk(await uploadForm(api, id, fields)), { message: "File uploaded", path: "/root/form", size: content.length });
    assert.equal(await run("cat /root/form"), content);
  });
}

test("the path and the mode of a multipart upload may stand in the query", async () => {
  expectOk(await uploadForm(api, id, [["file", blob("q")]], "?path=/root/from-query&mode=0711"));
  assert.equal(await run("stat -c %a /root/from-query"), "711\n");
});

test("a raw upload goes to the path of its query, its mode is 644 or what was asked for", async () => {
  assert.deepEqual(expectOk(await uploadRaw(api, id, "/root/raw", "raw")), { message: "File uploaded", path: "/root/raw", size: 3 });
  expectOk(await uploadRaw(api, id, "/root/tool", "#!/bin/sh\necho runs\n", "&mode=755"));
  assert.equal(await run("stat -c %a /root/raw /root/tool; /root/tool"), "644\n755\nruns\n");
});

test("missing parent folders are made", async () => {
  expectOk(await uploadRaw(api, id, "/root/a/b/c/../d/file", "deep"));
  assert.equal(await run("cat /root/a/b/d/file"), "deep");
});

test("a file goes into /tmp, where uploads are put together, as it goes anywhere else", async () => {
  for (const content of ["first", "second"]) {
    expectOk(await uploadForm(api, id, [["file", blob(content)]], "?path=/tmp/uploaded"));
    assert.equal(await run("cat /tmp/uploaded; ls -A /tmp | grep -c sandgate-upload"), `${content}0\n`);
  }
});

test("an empty file is a file", async () => {
  assert.equal(expectOk(await uploadRaw(api, id, "/root/empty", "")).size, 0);
  assert.equal(
    expectOk(
      await uploadForm(api, id, [
        ["path", "/root/empty2"],
        ["file", blob("")],
      ]),
    ).size,
    0,
  );
  assert.equal(await run("stat -c %s /root/empty /root/empty2"), "0\n0\n");
  const { status, headers, body } = await download(api, id, "/root/empty");
  assert.deepEqual([status, headers.get("content-length"), body.length], [200, "0", 0]);
});

test("20 MB of random bytes come back as they went in", async () => {
  const bytes = randomBytes(20_000_000);
  const sum = sha256(bytes);
  assert.equal(expectOk(await uploadRaw(api, id, "/root/random", bytes)).size, bytes.length);
  assert.equal((await run("sha256sum < /root/random")).split(" ")[0], sum);
  const raw = await download(api, id, "/root/random");
  assert.equal(raw.headers.get("content-length"), String(bytes.length));
  assert.equal(sha256(raw.body), sum);
  expectOk(
    await uploadForm(api, id, [
      ["file", new Blob([bytes])],
      ["path", "/root/random2"],
    ]),
  );
  assert.equal((await run("sha256sum < /root/random2; rm /root/random*")).split(" ")[0], sum);
});

for (const name of [
  "two words",
  `quo"te's`,
  "line\nend\r",
  "ünï😀",
  "-rf",
  "--help",
  "$(touch x)`id`",
  "a;b&c|d>e",
  "*?[x]",
  "back\\slash",
  "%2e%2e",
  "%00",
  " ",
  "x".repeat(255),
]) {
  test(`a file may be called ${JSON.stringify(name).slice(0, 40)}`, async () => {
    const path = `/root/names/${name}`;
    const content = randomBytes(16);
    assert.equal(expectOk(await uploadRaw(api, id, path, content)).path, path);
    const { status, headers, body } = await download(api, id, path);
    assert.equal(status, 200);
    assert.deepEqual(body, content);
    const [, ascii, utf8] = /^attachment; filename="([ -~]*)"; filename\*=UTF-8''([\w.!#$&+^`|~%-]+)$/.exec(headers.get("content-disposition") ?? "") ?? [];
    assert.ok(ascii !== undefined && !/["\\]/.test(ascii), headers.get("content-disposition") ?? "no Content-Disposition");
    assert.equal(decodeURIComponent(utf8 ?? ""), name);
    assert.equal(await run("ls -A /root/names | wc -l; rm -r /root/names"), name.includes("\n") ? "2\n" : "1\n");
  });
}

test("a download has its type, its length and forbids guessing", async () => {
  const { status, headers, body } = await download(api, id, "/etc/passwd");
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), "application/octet-stream");
  assert.equal(headers.get("content-length"), String(body.length));
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(body.toString(), await run("cat /etc/passwd"));
});

test("a directory comes as a tar with archive=tar, otherwise it is unprocessable", async () => {
  await run("mkdir -p /root/dir/sub && echo 1 > /root/dir/one && echo 2 > '/root/dir/sub/-t w o' && ln -s one /root/dir/link && mkfifo /root/dir/pipe");
  expectError((await download(api, id, "/root/dir")).error, "unprocessable", "the path is a directory: /root/dir", "is_directory");
  const { status, headers, body } = await download(api, id, "/root/dir", "&archive=tar");
  assert.deepEqual([status, headers.get("content-type")], [200, "application/octet-stream"]);
  assert.match(headers.get("content-disposition") ?? "", /filename="dir\.tar"/);
  expectOk(await uploadRaw(api, id, "/root/back.tar", body));
  assert.equal(
    await run("mkdir /root/back && tar -C /root/back -xf /root/back.tar && cd /root/back && find . | sort && cat one 'sub/-t w o' link"),
    ".\n./link\n./one\n./pipe\n./sub\n./sub/-t w o\n1\n2\n1\n",
  );
  const root = await api.raw("HEAD", `/v1/sandboxes/${id}/download?path=/root/dir&archive=tar`);
  assert.deepEqual([root.status, root.headers.get("content-length")], [200, null]);
  await untilNothingIsLeft(api, id);
});

test("a single file comes as a tar too", async () => {
  await run("echo 1 > /root/-single");
  const { status, body } = await download(api, id, "/root/-single", "&archive=tar");
  assert.equal(status, 200);
  assert.equal(body.subarray(0, 9).toString(), "./-single");
});

test("an archive in place of files that may not be replaced is refused for that", async () => {
  const folder = "/run/.sandgate";
  await run("cd /root; echo new > generation; tar -cf generation.tar generation");
  const { body } = await download(api, id, "/root/generation.tar");
  expectError(await uploadRaw(api, id, folder, body, "&archive=tar"), "unprocessable", `permission denied: ${folder}`, "permission_denied");
  assert.notEqual(await run(`cat ${folder}/generation`), "new\n");
  assert.equal(expectOk(await uploadRaw(api, id, "/root", body, "&archive=tar")).files, 1);
  await run("rm /root/generation /root/generation.tar");
});

test("what is not there is not found", async () => {
  for (const path of ["/none", "/root/none/file", "/etc/passwd/file", "/proc/999999/maps"]) {
    expectError((await download(api, id, path)).error, "not_found", `File not found: ${path}`, "no_such_file");
    expectError((await download(api, id, path, "&archive=tar")).error, "not_found");
  }
});

test("a path that is a directory, or leads through a file, cannot be uploaded to", async () => {
  await run("mkdir -p /root/isdir && ln -sfn /root/isdir /root/todir");
  for (const path of ["/root/isdir", "/root/isdir/", "/root/todir", "/", "/root/new/", "/root/."]) {
    expectError(await uploadRaw(api, id, path, "x"), "unprocessable", /directory/, "is_directory");
  }
  expectError(await uploadRaw(api, id, "/etc/passwd/x", "x"), "unprocessable", /not a directory/, "not_a_directory");
  expectError(
    await uploadForm(api, id, [
      ["file", blob("x")],
      ["path", "/root/isdir"],
    ]),
    "unprocessable",
    /directory/,
  );
  assert.equal(await run("ls -A /root/isdir"), "");
  await untilNothingIsLeft(api, id, "/root", "/etc", "/");
});

for (const [what, query] of [
  ["no path", ""],
  ["an empty path", "?path="],
  ["a relative path", "?path=etc/passwd"],
  ["a path with NUL", "?path=/etc/passwd%00.txt"],
] as const) {
  test(`${what} is refused for upload and download`, async () => {
    const message = query ? /^path must be an absolute path of at most 4096 characters without NUL$/ : "Missing required field: path";
    expectError(await api.call("GET", `/v1/sandboxes/${id}/download${query}`), "invalid_request", message);
    expectError(await api.call("POST", `/v1/sandboxes/${id}/upload${query}`), "invalid_request", message);
  });
}

test("a mode that is none and an archive that is none are refused", async () => {
  for (const mode of ["999", "rwx", "7", "07777777", "", "-644", "644 x"]) {
    expectError(await uploadRaw(api, id, "/root/x", "x", `&mode=${encodeURIComponent(mode)}`), "invalid_request", /^mode must be an octal file mode/);
  }
  expectError(
    await uploadForm(api, id, [
      ["file", blob("x")],
      ["path", "/root/x"],
      ["mode", "u+x"],
    ]),
    "invalid_request",
    /^mode must be/,
  );
  expectError((await download(api, id, "/etc", "&archive=zip")).error, "invalid_request", 'archive must be "tar"');
});

test("a form without a file or without a path is refused and leaves nothing", async () => {
  expectError(await uploadForm(api, id, [["path", "/root/x"]]), "invalid_request", "Missing required field: file");
  expectError(await uploadForm(api, id, [["file", blob("x")]]), "invalid_request", "Missing required field: path");
  expectError(
    await uploadForm(api, id, [
      ["path", "x"],
      ["file", blob("x")],
    ]),
    "invalid_request",
    /^path must be/,
  );
  await untilNothingIsLeft(api, id);
});

const part = (headers: string, value = "x") => `--b\r\ncontent-disposition: form-data; ${headers}\r\n\r\n${value}\r\n`;
const pathPart = part('name="path"', "/root/strict");
const filePart = part('name="file"; filename="f"');
for (const [what, body, message] of [
  ["two files", pathPart + filePart + filePart, /^the field file must come only once/],
  ["two paths", pathPart + pathPart + filePart, "the field path must come only once"],
  ["a second path after the file", pathPart + filePart + part('name="path"', "/root/other"), "the field path must come only once"],
  ["two modes", pathPart + part('name="mode"', "644") + part('name="mode"', "755") + filePart, "the field mode must come only once"],
  ["a field that nobody knows", pathPart + part('name="owner"', "root") + filePart, "Unknown field: owner"],
  ["a field without a name", pathPart + part("") + filePart, /^each part of the form must have a name/],
  ["a file without a name", pathPart + part('filename="f"'), /^each part of the form must have a name/],
  ["a file under another name", pathPart + part('name="upload"; filename="f"') + filePart, "Unknown field: upload"],
  ["a path that is a file", part('name="path"; filename="f"', "/root/strict") + filePart, /^the field path must be text/],
  ["a file that is text", pathPart + part('name="file"'), /^the field file must have a filename/],
  ["a path that is cut", part('name="path"', `/root/${"x".repeat(9_000)}`) + filePart, /^the field path must be at most 8192 bytes$/],
  ["a part that is encoded", pathPart + part('name="file"; filename="f"\r\ncontent-transfer-encoding: base64', "eA=="), /Content-Transfer-Encoding$/],
] as const) {
  test(`a form with ${what} is refused and leaves nothing`, async () => {
    const response = await api.raw("POST", `/v1/sandboxes/${id}/upload`, `${body}--b--\r\n`, { "content-type": "multipart/form-data; boundary=b" });
    expectError({ status: response.status, headers: response.headers, body: await response.json() }, "invalid_request", message);
    assert.equal((await api.execute(id, "ls /root/strict /root/other")).exit_code, 2);
    await untilNothingIsLeft(api, id, "/root");
  });
}

test("what the address says of a file cannot be said by the form, too", async () => {
  const fields: [string, string | Blob][] = [
    ["path", "/root/strict"],
    ["file", blob("x")],
  ];
  expectError(await uploadForm(api, id, fields, "?path=/root/strict"), "invalid_request", /^path must come only once/);
  assert.equal(expectOk(await uploadForm(api, id, fields, "?mode=600")).path, "/root/strict");
  await run("rm /root/strict");
});

test("an upload that asks for what there is not, or comes encoded, is refused and leaves nothing", async () => {
  expectError(await uploadRaw(api, id, "/root/strict", "x", "&owner=root"), "invalid_request", "Unknown query parameter: owner");
  expectError(await uploadRaw(api, id, "/root/strict", "x", "&archive=zip"), "invalid_request", 'archive must be "tar"');
  for (const encoding of ["gzip", "br", "identity, gzip", "x"]) {
    const headers = { "content-type": "application/octet-stream", "content-encoding": encoding };
    const response = await api.raw("POST", `/v1/sandboxes/${id}/upload?path=/root/strict`, gzipSync("text"), headers);
    expectError(
      { status: response.status, headers: response.headers, body: await response.json() },
      "invalid_request",
      /^the Content-Encoding must be identity/,
    );
    const command = await api.raw("POST", `/v1/sandboxes/${id}/execute`, gzipSync('{"command":"true"}'), { "content-encoding": encoding });
    expectError({ status: command.status, headers: command.headers, body: await command.json() }, "invalid_request", /^the Content-Encoding must be/);
  }
  assert.equal((await api.execute(id, "ls /root/strict")).exit_code, 2);
});

test("a form that ends before its last boundary does not replace the file", async () => {
  await run("echo old > /root/kept");
  const part = (name: string, value: string, file = "") => `--b\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  const path = part("path", "/root/kept");
  const file = part("file", "new", '; filename="f"\r\ncontent-type: text/plain');
  for (const [body, type] of [
    [path + file, "multipart/form-data; boundary=b"],
    [path + file.slice(0, -3), "multipart/form-data; boundary=b"],
    [path, "multipart/form-data; boundary=b"],
    ["", "multipart/form-data; boundary=b"],
    ["no form at all", "multipart/form-data; boundary=b"],
    [`${path + file}--b--\r\n`, "multipart/form-data; boundary=other"],
    [`${path + file}--b--\r\n`, "multipart/form-data"],
  ] as const) {
    const response = await api.raw("POST", `/v1/sandboxes/${id}/upload`, body, { "content-type": type });
    expectError({ status: response.status, headers: response.headers, body: await response.json() }, "invalid_request");
  }
  assert.equal(await run("cat /root/kept"), "old\n");
  await untilNothingIsLeft(api, id, "/root");
});

test("a raw body of another type than application/octet-stream is refused", async () => {
  for (const type of ["text/plain", "application/json", "image/png"]) {
    const response = await api.raw("POST", `/v1/sandboxes/${id}/upload?path=/root/x`, "x", { "content-type": type });
    expectError({ status: response.status, headers: response.headers, body: await response.json() }, "invalid_request", /Content-Type/);
  }
});

test("fifos, devices and sockets are unprocessable in both directions and never wait", async () => {
  await run("mkfifo /root/fifo; ln -sfn /dev/zero /root/zero");
  for (const path of ["/root/fifo", "/dev/zero", "/dev/null", "/dev/stdin", "/dev/tty", "/root/zero"]) {
    const { status, error } = await download(api, id, path);
    assert.ok(status === 422 || status === 404, `${path}: ${status} ${JSON.stringify(error.body)}`);
  }
  for (const path of ["/root/fifo", "/dev/zero", "/dev/null", "/root/zero"]) {
    expectError(await uploadRaw(api, id, path, "x"), "unprocessable", /not a regular file/, "exists");
  }
  assert.equal(await run("[ -p /root/fifo ] && [ -c /dev/null ] && [ -c /dev/zero ] && echo kept"), "kept\n");
  await untilNothingIsLeft(api, id, "/root", "/dev");
});

test("the sandbox's storage bounds what is uploaded, told before and found while it comes", async () => {
  const small = await api.create({ resources: { storage: 1 } });
  try {
    await api.execute(small, "fallocate -l 1020M /root/big");
    expectError(await uploadRaw(api, small, "/root/more", Buffer.alloc(8 * 1024 * 1024)), "insufficient_storage", /storage of 1 GB/);
    // fetch reads on after the connection has been closed, so that it must come to an end.
    let restMiB = 200;
    const body = new ReadableStream({
      pull(controller) {
        if (restMiB-- > 0) controller.enqueue(Buffer.alloc(1024 * 1024));
        else controller.close();
      },
    });
    const response = await api.raw("POST", `/v1/sandboxes/${small}/upload?path=/root/more`, body, { "content-type": "application/octet-stream" });
    expectError({ status: response.status, headers: response.headers, body: await response.json() }, "insufficient_storage");
    await untilNothingIsLeft(api, small, "/root");
    assert.equal((await api.execute(small, "ls /root")).stdout, "big\n");
  } finally {
    await api.delete(small);
  }
});

test("the connection is kept after uploads, downloads and their errors", async () => {
  const wire = await Connection.open(api.url);
  try {
    const call = (method: string, path: string, body?: string) =>
      wire.request(method, `/v1/sandboxes/${id}${path}`, { "x-api-key": api.apiKey }, body).answer();
    expectOk(await call("POST", "/upload?path=/root/kept-alive", "bytes"));
    assert.equal((await call("GET", "/download?path=/root/kept-alive")).body as unknown, "bytes");
    expectError(await call("GET", "/download?path=/none"), "not_found");
    expectError(await call("POST", "/upload?path=/root/isdir/", "bytes"), "unprocessable");
    expectError(await call("POST", "/upload", "bytes"), "invalid_request");
    expectError(await call("POST", "/upload?path=/root/x&mode=x", "bytes"), "invalid_request");
    assert.equal((await call("GET", "/download?path=/root/kept-alive")).body as unknown, "bytes");
  } finally {
    wire.cut();
  }
});
