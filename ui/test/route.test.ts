import assert from "node:assert/strict";
import { test } from "node:test";

import { format, having, parse, start, to } from "../src/core/route.ts";

test("an address is read back as what it was made of", () => {
  for (const name of ["ml/train", "a?b#c", "100%", "<script>", "ünï code", "a&b=c"]) {
    const route = { view: "job" as const, name, query: { policy: "fair", q: name } };
    assert.deepEqual(parse(format(route)), route);
  }
});

test("what is no address shows the cluster", () => {
  for (const fragment of ["", "#", "#/", "#/nowhere/x", "#javascript:alert(1)"]) {
    assert.deepEqual(parse(fragment), start);
  }
  assert.equal(parse("#/job/%E0%A4%A").name, "%E0%A4%A");
});

test("policy and resource go from view to view, the rest does not", () => {
  const route = parse("#/cluster?policy=fair&r=cpu&sort=has");
  assert.equal(to(route, "waiting"), "#/waiting?policy=fair&r=cpu");
  assert.equal(having(route, { sort: "" }), "#/cluster?policy=fair&r=cpu");
});
