/** A first start on records from a backup: sandboxes and snapshots in them may have files that are on no disk any more. */
import { readFileSync, rmSync } from "node:fs";
import { type Config, restoredMarkOf } from "../shared/config.ts";
import { attempt } from "../shared/util/attempt.ts";

type Place = Pick<Config, "dataDir">;

/** When the backup was made, if this is such a start. */
export const restoredFrom = ({ dataDir }: Place): string | undefined => attempt(() => readFileSync(restoredMarkOf(dataDir), "utf8").trim());

/** To be called when everything is reconciled with what there is. */
export const forgetRestored = ({ dataDir }: Place): void => rmSync(restoredMarkOf(dataDir), { force: true });
