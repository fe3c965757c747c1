/**
 * A program that opens the records of a stopped worker, and reads and writes them. LMDB maps its file into memory, so a
 * damaged file kills the process that reads it: this one instead of the worker.
 */
import { Store } from "./store.ts";

const [dir = ""] = process.argv.slice(2);
const store = new Store(dir);
for (const _entry of store.entries());
await store.setCordoned(store.cordoned);
await store.close();
