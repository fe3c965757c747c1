/** Many live sessions at once on one gateway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
const [sandboxCount, sessionsEach] = [8, 25];

test("200 sessions at once each get their own input back, and their exit codes", async () => {
  const ids = await Promise.all(Array.from({ length: sandboxCount }, () => sandboxes.make()));
  const clients = (
    await Promise.all(
      ids.map((id) => Promise.all(Array.from({ length: sessionsEach }, () => start(api, id, { tty: true, command: "read line; echo got $line; exit 3" })))),
    )
  ).flat();
  assert.equal(clients.length, 200);
  for (const [index, client] of clients.entries()) client.type(`${index}\r`);
  for (const [index, client] of clients.entries()) {
    await client.closed();
    assert.ok(client.text[1].includes(`got ${index}\r\n`), client.text[1]);
    assert.equal(client.exit?.exit_code, 3);
  }
  assert.equal(new Set(clients.map(({ id }) => id)).size, 200);
});
