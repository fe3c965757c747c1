export { searchPath } from "./install.mjs";
