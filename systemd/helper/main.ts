/** The privileged helper as a process of its own, started by root's sudo: serves its standard input and output until that ends. */
import { searchPath } from "../base/search-path.mjs";
import { servedOf } from "./arguments.ts";
import { serve } from "./serve.ts";

process.env.PATH = searchPath;
serve(process.stdin, process.stdout, servedOf(process.argv.slice(2)));
