/** The command line itself: what it refuses, where it finds the gateway and the key, what it does not do without being told. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AdminCommand } from "../../helpers/admin-command.ts";
import { Cli } from "../../helpers/cli.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import type { AdminWorld } from "./world.ts";

const mistakes: readonly [args: string[], message: RegExp][] = [
  [[], /^Usage: sandgate admin COMMAND/],
  [["acounts"], /unknown command 'acounts'\n\(Did you mean accounts\?\)/],
  [["accounts", "extra"], /too many arguments for 'accounts'/],
  [["account"], /missing required argument 'ACCOUNT'/],
  [["create-account"], /missing required argument 'EMAIL'/],
  [["create-account", "ada@example.com", "--tier", "gold"], /--tier takes beta, pro, enterprise/],
  [["create-account", "ada@example.com", "--default-limits"], /unknown option '--default-limits'/],
  [["revoke"], /missing required argument 'KEY_ID'/],
  [["accounts", "--tier", "pro"], /unknown option '--tier'/],
  [["accounts", "--colour"], /unknown option '--colour'/],
  [["set", "acct_x"], /set requires at least one option/],
  [["set", "acct_x", "--tier", "gold"], /--tier takes beta, pro, enterprise/],
  [["set", "acct_x", "--requests", "0"], /--requests takes a whole number from 1/],
  [["set", "acct_x", "--sandboxes", "many"], /--sandboxes takes a whole number from 0/],
  [["set", "acct_x", "--burst", "5", "--default-limits"], /not both/],
  [["set-key", "key_x"], /set-key requires at least one option/],
  [["set-key", "key_x", "--tier", "pro", "--default-tier"], /not both/],
  [["accounts", "--url", "localhost"], /is not the address of a gateway/],
  [["suspend", "acct_x"], /Without a terminal this needs --yes/],
  [["revoke", "key_x"], /Without a terminal this needs --yes/],
  [["forget", "worker"], /Without a terminal this needs --yes/],
  [["delete", "sb_x"], /Without a terminal this needs --yes/],
];

export function commandUsageTests(world: AdminWorld): void {
  const admin = fixture(new AdminCommand(world.stack));

  test("help says all that there is, without any installation", async () => {
    const ways: readonly [args: string[], words: string[]][] = [
      [["help"], ["Usage:", "accounts", "set-key", "forget", "--key-file", "Exit codes"]],
      [["--help"], ["Usage:", "accounts", "set-key", "forget", "--key-file", "Exit codes"]],
      [
        ["set", "-h"],
        ["Usage: sandgate admin set", "ACCOUNT", "--default-limits", "--no-operator", "--key-file", "--json"],
      ],
      [
        ["help", "images"],
        ["Usage: sandgate admin images", "--worker", "rm"],
      ],
    ];
    for (const [args, words] of ways) {
      const { exitCode, stdout, stderr } = await admin.launch({ SANDGATE_DATA_DIR: "/none" }, ...args);
      assert.deepEqual([exitCode, stderr], [0, ""]);
      for (const word of words) assert.ok(stdout.includes(word), word);
    }
  });

  test("wrong usage ends with 2, says what is wrong, and does nothing", async () => {
    const outcomes = await Promise.all(mistakes.map(async ([args, message]) => ({ args, message, ...(await admin.run(...args)) })));
    for (const { args, message, exitCode, stdout, stderr } of outcomes) {
      assert.deepEqual([exitCode, stdout], [2, ""], args.join(" "));
      assert.match(stderr, message);
      if (args.length > 0) assert.match(stderr, /^sandgate: .*\nSee sandgate COMMAND --help\.$/s);
    }
  });

  test("what the server refuses ends with 1 and the server's words", async () => {
    const unknown = await admin.run("account", "nobody@example.com");
    assert.deepEqual([unknown.exitCode, unknown.stdout, unknown.stderr], [1, "", "sandgate: no account has the e-mail address nobody@example.com"]);
    const absent = await admin.run("resume", "acct_none", "--json");
    assert.equal(absent.exitCode, 1);
    assert.match(absent.stderr, /^sandgate: Account not found: acct_none \(req_\w+\)$/);
    const member = await world.member();
    const { key } = await member.makeKey();
    const variables = { SANDGATE_URL: world.stack.url };
    for (const [apiKey, message] of [
      [key, /^sandgate: Only an operator may do this\. \(req_\w+\)$/],
      ["sg_wrong", /^sandgate: Invalid API key\./],
    ] as const) {
      const { exitCode, stderr } = await admin.runWith({ ...variables, SANDGATE_API_KEY: apiKey }, "accounts");
      assert.equal(exitCode, 1);
      assert.match(stderr, message);
      assert.ok(!stderr.includes(apiKey));
    }
  });

  test("the key comes from a file, the environment or the data directory, the gateway from an option or the environment", async () => {
    const { url, apiKey, dataDir } = world.stack;
    writeFileSync(join(admin.folder, "api-key"), `${apiKey}\n`);
    const ways: readonly [variables: Record<string, string>, args: string[]][] = [
      [{ SANDGATE_URL: url, SANDGATE_API_KEY: apiKey }, []],
      [{ SANDGATE_URL: "http://127.0.0.1:9", SANDGATE_API_KEY: apiKey }, ["--url", `${url}/`]],
      [{ SANDGATE_URL: url, SANDGATE_API_KEY: "sg_wrong" }, ["--key-file", "operator-key"]],
      [{ SANDGATE_URL: url, SANDGATE_DATA_DIR: admin.folder }, []],
      [{ SANDGATE_DATA_DIR: dataDir }, []],
    ];
    for (const [variables, args] of ways) {
      const { exitCode, stderr } = await admin.launch(variables, "workers", ...args);
      assert.equal(exitCode, 0, stderr);
    }
    for (const [variables, message] of [
      [{ SANDGATE_URL: url, SANDGATE_DATA_DIR: join(dataDir, "none") }, /no API key: ENOENT.*\nGive one with --key-file or SANDGATE_API_KEY/],
      [{ SANDGATE_URL: "http://127.0.0.1:9", SANDGATE_API_KEY: apiKey }, /^sandgate: no answer from http:\/\/127\.0\.0\.1:9: /],
      [{ SANDGATE_DATA_DIR: admin.folder }, /^sandgate: no answer from \S+\/operator\.sock: no gateway has been started there\. SANDGATE_DATA_DIR /],
    ] as const) {
      const { exitCode, stderr } = await admin.runWith(variables, "workers");
      assert.equal(exitCode, 1);
      assert.match(stderr, message);
    }
  });

  test("names of strangers reach the terminal without control characters", async () => {
    const member = await world.member();
    // Right-to-left override: it is no control character, and still turns the line around.
    const name = "evil\u202e key";
    expectOk(await member.call("POST", "/v1/account/keys", { name }), 201);
    const { stdout } = await admin.run("keys", "--account", member.id);
    assert.ok(!stdout.includes("\u202e") && stdout.includes("evil\ufffd key"));
  });

  test("the same commands stand below `sandgate admin`, which reads what `login` has stored where there is no installation", async () => {
    const { url, apiKey, dataDir } = world.stack;
    using cli = new Cli({ url, apiKey });
    const workers = await cli.json<{ data: { id: string }[] }>("admin", "workers");
    assert.ok(workers.data.length > 0);
    const bare = { SANDGATE_URL: "", SANDGATE_API_KEY: "" };
    assert.equal((await cli.runWith({ env: bare, input: `${apiKey}\n` }, "login", "--key-stdin", "--url", url)).exitCode, 0);
    const none = { ...bare, SANDGATE_DATA_DIR: join(dataDir, "none") };
    for (const args of [
      ["admin", "workers", "--json"],
      ["admin", "--json", "workers"],
    ]) {
      const { exitCode, stdout, stderr } = await cli.runWith({ env: none }, ...args);
      assert.equal(exitCode, 0, stderr);
      assert.deepEqual(JSON.parse(stdout).data.length, workers.data.length);
    }
    const elsewhere = await cli.runWith({ env: { ...none, SANDGATE_URL: "http://127.0.0.1:9" } }, "admin", "workers");
    assert.match(elsewhere.stderr, /no API key: ENOENT/);
  });
}
