/** The table of attacks at the end of a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Attacks } from "../helpers/attacks.ts";

test("tests of escape and walls files stand in the table by topic, with what became of them; others do not", () => {
  const attacks = new Attacks();
  attacks.note({ name: "reads a host file", file: "/x/test/e2e/escape/images.test.ts" }, true);
  attacks.note({ name: "a sandbox starts", file: "/x/test/e2e/operate/smoke.test.ts" }, false);
  attacks.note({ name: "opens AF_VSOCK", file: "/x/test/e2e/escape/http.test.ts" }, false);
  attacks.note({ name: "control: the internet is open", file: "/x/test/e2e/escape/http.test.ts" }, true);
  attacks.note({ name: "makes an x32 call", file: "/x/test/e2e/escape/http.test.ts", skip: "x86 alone has it" }, true);
  attacks.note({ name: "reads a key of root's", file: "/x/test/e2e/walls/users.test.ts" }, true);
  attacks.note({ name: "/x/test/e2e/escape/zero.test.ts", file: "/x/test/e2e/escape/zero.test.ts" }, false);
  const lines = attacks
    .table()
    ?.split("\n")
    .map((line) => line.trim().split(/ {2,}/));
  assert.deepEqual(lines, [
    ["topic", "tried", "outcome"],
    ["http", "opens AF_VSOCK", "NOT HELD"],
    ["http", "control: the internet is open", "works"],
    ["http", "makes an x32 call", "not tried: x86 alone has it"],
    ["images", "reads a host file", "held"],
    ["users", "reads a key of root's", "held"],
    ["zero", "the file itself", "NOT HELD"],
    ["attacks: 4 tried, 2 held"],
  ]);
});

test("a run without attacks has no table", () => {
  assert.equal(new Attacks().table(), undefined);
});
