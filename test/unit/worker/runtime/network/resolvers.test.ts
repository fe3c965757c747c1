/** Where a sandbox looks names up. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Resolvers, resolverText } from "../../../../../worker/runtime/network/resolvers.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";

test("the network's own resolver comes first, then those of the host that a sandbox can reach", () => {
  const host = "# by hand\nnameserver 127.0.0.53\nnameserver 9.9.9.9\nnameserver\t2620:fe::fe\n\nsearch one.example two.example\noptions edns0 trust-ad\n";
  assert.equal(resolverText(host), "search one.example two.example\nnameserver 10.0.2.3\nnameserver 9.9.9.9\noptions edns0 trust-ad\n");
  assert.equal(resolverText(""), "nameserver 10.0.2.3\n");
});

test("every start has a new file, which everybody in the sandbox can read", () => {
  using folder = temporaryFolder("resolvers");
  const resolvers = new Resolvers(join(folder.path, "resolvers"));
  const file = resolvers.of("sb_1");
  resolvers.make("sb_1");
  writeFileSync(file, "changed by the sandbox");
  resolvers.make("sb_1");
  assert.match(readFileSync(file, "utf8"), /^nameserver 10\.0\.2\.3$/m);
  assert.deepEqual([statSync(file).mode & 0o777, statSync(join(folder.path, "resolvers")).mode & 0o777], [0o644, 0o711]);
  resolvers.remove("sb_1");
  assert.ok(!existsSync(file));
});
