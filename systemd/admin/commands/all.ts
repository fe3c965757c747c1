/** Every command of `sandgate-admin`, in the order of its help. */
import type { Command } from "../command.ts";
import { accountCommands } from "./accounts.ts";
import { imageCommands } from "./images.ts";
import { keyCommands } from "./keys.ts";
import { sandboxCommands } from "./sandboxes.ts";
import { workerCommands } from "./workers.ts";

export const commands: readonly Command[] = [...accountCommands, ...keyCommands, ...workerCommands, ...sandboxCommands, ...imageCommands];
