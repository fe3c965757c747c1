/** What an account is told about what it uses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk, isoTime } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import type { World } from "./world.ts";

interface Usage {
  readonly timestamp: string;
  readonly sandboxes: Record<string, number>;
  readonly keys: {
    readonly id: string;
    readonly name: string;
    readonly prefix: string | null;
    readonly dashboard: boolean;
    readonly requests: { readonly limit: number; readonly remaining: number };
    readonly sandboxes: { readonly used: number; readonly limit: number };
  }[];
  readonly history: { readonly timestamp: string; readonly requests: number; readonly refused: number; readonly sandboxes: number }[];
}

export function usageTests(world: World): void {
  test("usage shows what each key and the browsers have left, on every gateway the same", async () => {
    const member = await world.member();
    const [made, revoked] = [await member.makeKey("used"), await member.makeKey("revoked")];
    expectOk(await member.call("DELETE", `/v1/account/keys/${revoked.id}`));
    const api = new Api({ url: world.stack.url, apiKey: made.key });
    const sandbox = await api.create();
    expectOk(await api.call("GET", "/v1/sandboxes/list"));
    for (const url of world.stack.urls) {
      const browser = member.at(url);
      const { timestamp, sandboxes, keys, history } = await until("all is known", async () => {
        const { status, body } = await browser.call<Usage>("GET", "/v1/account/usage");
        return status === 200 && body.sandboxes.running === 1 && body;
      });
      assert.match(timestamp, isoTime);
      assert.deepEqual(sandboxes, { running: 1, creating: 0, error: 0, total: 1 });
      assert.deepEqual(
        keys.map(({ requests: { limit, remaining }, ...rest }) => ({ ...rest, limit, isLess: remaining < limit })),
        [
          { id: made.id, name: "used", prefix: made.prefix, dashboard: false, sandboxes: { used: 1, limit: 10 }, limit: 60, isLess: true },
          { id: keys[1]?.id, name: "Dashboard", prefix: null, dashboard: true, sandboxes: { used: 0, limit: 10 }, limit: 60, isLess: false },
        ],
      );
      assert.match(keys[1]?.id ?? "", /^acct_/);
      assert.equal(history.length, 60);
      for (const minute of history) assert.match(minute.timestamp, /:00\.000Z$/);
      assert.equal(
        history.reduce((sum, { requests }) => sum + requests, 0),
        2,
        "looking at usage is no request",
      );
    }
    expectOk(await api.call("DELETE", `/v1/sandboxes/${sandbox}/delete`));
  });
}
