import { format, parse } from "../src/logic/route.ts";
import { deepEqual, equal, test } from "./check.ts";

test("addresses of views and back", () => {
  for (const hash of ["#/team-a/deployments", "#/team-a/requests/qwen", "#/team-a/deployments/qwen/logs", "#/team-a/deployments/qwen/logs?pod=qwen-1", "#/team-a/deploy", "#/team-a/requests?filter=a%2Fb&sort=-Age"])
    equal(format(parse(hash)), hash);
});

test("an invalid address leads to the start view", () => {
  equal(parse("").view, "home");
  equal(parse("#/%E0%A4%A").view, "home");
  deepEqual(parse("#/a/rubbish").kind, "deployments");
  for (const hash of ["#/a%2Fdeployments%2Fb%2Frestart%3F", "#/..", "#/%2e%2e%2Fx"]) equal(parse(hash).view, "home", hash);
  for (const hash of ["#/a/deployments/b%2Frestart%3Fx", "#/a/deployments/.."]) equal(parse(hash).view, "list", hash);
});
