/** What operators do, over HTTP and with the command: one installation with two gateways and two workers. */
import { describe } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { startStack } from "../../helpers/stack.ts";
import { Visitor } from "../../helpers/visitor.ts";
import { adminAccountTests } from "./accounts.ts";
import { auditTests } from "./audit.ts";
import { commandTests } from "./command.ts";
import { commandUsageTests } from "./command-usage.ts";
import { adminKeyTests } from "./keys.ts";
import { adminSandboxTests } from "./sandboxes.ts";
import { workerTests } from "./workers.ts";
import type { AdminWorld } from "./world.ts";

const world: AdminWorld = {
  get stack() {
    return stack;
  },
  operator: (gateway = 0) => new Api({ url: stack.urls[gateway] as string, apiKey: stack.apiKey }),
  async member(gateway = 0) {
    const visitor = new Visitor(stack.urls[gateway] as string);
    const { status, body } = await visitor.signUp();
    if (status !== 200) throw new Error(JSON.stringify(body));
    return Object.assign(visitor, { id: body.account.id });
  },
};

const stack = await fixture(startStack({ name: "admin", gateways: 2, workers: 2 }));

describe("accounts", () => adminAccountTests(world));
describe("keys", () => adminKeyTests(world));
describe("audit record", () => auditTests(world));
describe("sandboxes", () => adminSandboxTests(world));
describe("command", () => commandTests(world));
describe("command line", () => commandUsageTests(world));
// Last, because one worker does not come back.
describe("workers", () => workerTests(world));
