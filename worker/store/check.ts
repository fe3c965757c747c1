/**
 * A program: opens the records of a worker that does not run, and reads and writes them. LMDB maps its file into memory, so
 * that one which is damaged ends the process that reads it: this one, in place of the worker.
 */
import { Store } from "./store.ts";

const [dir = ""] = process.argv.slice(2);
const store = new Store(dir);
for (const _entry of store.entries());
await store.setCordoned(store.cordoned);
await store.close();
