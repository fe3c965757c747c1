/** Where a sandbox looks names up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { resolverText } from "../../../../../worker/runtime/network/resolvers.ts";

test("the network's own resolver comes first, then those of the host that a sandbox can reach", () => {
  const host = "# by hand\nnameserver 127.0.0.53\nnameserver 9.9.9.9\nnameserver\t2620:fe::fe\n\nsearch one.example two.example\noptions edns0 trust-ad\n";
  assert.equal(resolverText(host), "search one.example two.example\nnameserver 10.0.2.3\nnameserver 9.9.9.9\noptions edns0 trust-ad\n");
  assert.equal(resolverText(""), "nameserver 10.0.2.3\n");
});
