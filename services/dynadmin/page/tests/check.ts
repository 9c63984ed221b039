// What tests take of Node.
export { test } from "node:test";
export { deepEqual, equal, ok } from "node:assert/strict";
