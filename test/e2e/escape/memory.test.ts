/** Memory limits, where the kernel enforces them and where the worker watches them. */
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { startStack } from "../../helpers/stack.ts";
import { memoryTopics } from "./memory.ts";

const watched = await fixture(startStack({ name: "watched", settings: { SANDGATE_CONTROL_GROUPS: "none" } }));

await memoryTopics(new Api(sharedStack()), "limited by the kernel");
await memoryTopics(new Api(watched), "watched by the worker");
