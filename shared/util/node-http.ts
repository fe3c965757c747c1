/**
 * Node's HTTP module. An ES module that imports it by name makes Node evaluate all of its properties, one of which loads an HTTP
 * client that we do not use: 0.15 s of CPU at every start.
 */
export const nodeHttp = process.getBuiltinModule("node:http");
